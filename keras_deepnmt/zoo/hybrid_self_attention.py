"""Presets of Song et al. (2018): self-attention with fused branches.

Source, target and output share one matrix, as in the paper, if both
vocabularies have the same size.
"""

from keras_deepnmt.layers.hybrid_self_attention import HybridSelfAttention
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import SIZES

PAPER = "Song et al. (2018)"
_register = register_variant(Transformer, SIZES, PAPER)


@register_variant(
    Transformer,
    {size: SIZES[size] for size in ("small", "base", "big")},
    PAPER,
    variant="transformer",
)
def hybrid_self_attention_baseline(arguments):
    """The plain Transformer that the paper compares with."""
    return {}


def _hybrid(arguments, fusion, **options):
    return HybridSelfAttention(
        arguments["num_heads"],
        fusion=fusion,
        # Gates have at least one unit in models narrower than the paper's.
        gate_reduction=min(32, arguments["hidden_dim"]),
        **options,
    )


@_register
def hybrid_self_attention_sum(arguments):
    """Global, forward, backward and local branches, added (Eq. 13)."""
    return {"encoder_self_attention": _hybrid(arguments, "sum")}


@_register
def hybrid_self_attention_concat(arguments):
    """Global, forward, backward and local branches, concatenated (Eq. 13)."""
    return {"encoder_self_attention": _hybrid(arguments, "concat")}


@_register
def hybrid_self_attention_gated(arguments):
    """Global, forward, backward and local branches, gated (Eq. 13-14)."""
    return {"encoder_self_attention": _hybrid(arguments, "gated_sum")}


@_register
def hybrid_self_attention_gated_decoder(arguments):
    """Gated branches in the encoder; forward and local in the decoder."""
    return {
        "encoder_self_attention": _hybrid(arguments, "gated_sum"),
        "decoder_self_attention": _hybrid(
            arguments, "gated_sum", branches=("forward", "local")
        ),
    }


describe_paper(
    PAPER,
    title="Hybrid Self-Attention Network for Machine Translation",
    links="[Song et al., 2018](https://arxiv.org/abs/1811.00253) (HySAN)",
    changes="adds directional and local branches to self-attention",
    presets="`hybrid_self_attention_*`",
    baseline="`hybrid_self_attention_baseline_*`",
)
