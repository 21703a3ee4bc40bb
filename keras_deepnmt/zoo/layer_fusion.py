"""Presets of Liu et al. (2021): layer attention and surface fusion.

Source, target and output share one matrix, as in the released code, if both
vocabularies have the same size.
"""

from keras_deepnmt.layers.fine_grained_layer_attention import (
    FineGrainedLayerAttention,
)
from keras_deepnmt.layers.surface_fusion import SurfaceFusion
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import base, big, changed, tiny

PAPER = "Liu et al. (2021)"
# The dropout of the released command.
BIG_SIZES = {"base": changed(base, dropout=0.3), "big": big}
_register = register_variant(Transformer, {"tiny": tiny, **BIG_SIZES}, PAPER)


@register_variant(Transformer, BIG_SIZES, PAPER, variant="transformer")
def layer_fusion_baseline(arguments):
    """The plain Transformer that the paper compares with."""
    return {}


@_register
def fine_grained_layer_attention(arguments):
    """Each decoder layer weights all encoder layers, per channel."""
    return {
        "encoder_fusion": FineGrainedLayerAttention(
            arguments["num_decoder_layers"]
        )
    }


@_register
def layer_attention(arguments):
    """Each decoder layer weights all encoder layers, one scalar per layer."""
    return {
        "encoder_fusion": FineGrainedLayerAttention(
            arguments["num_decoder_layers"], granularity="scalar"
        )
    }


@_register
def surface_fusion_hard(arguments):
    """Averages log-probabilities with those from the source embeddings."""
    return {
        "output_fusion": SurfaceFusion("hard", dropout=arguments["dropout"])
    }


@_register
def surface_fusion_soft(arguments):
    """Adds the log-probabilities from the source embeddings to the logits."""
    return {
        "output_fusion": SurfaceFusion("soft", dropout=arguments["dropout"])
    }


describe_paper(
    PAPER,
    title="Understanding and Improving Encoder Layer Fusion in "
    "Sequence-to-Sequence Learning",
    links="[Liu et al., 2021](https://arxiv.org/abs/2012.14768)",
    changes="gives each decoder layer its own mixture of encoder layers; fuses "
    "source embeddings into the output",
    presets="`fine_grained_layer_attention_*`, `layer_attention_*`, "
    "`surface_fusion_*`",
    baseline="`layer_fusion_baseline_*`",
    # The released command has dropout 0.3.
    dimensions={
        "base": dict(
            hidden_dim=512,
            intermediate_dim=2048,
            num_heads=8,
            num_encoder_layers=6,
            num_decoder_layers=6,
            dropout=0.3,
        ),
    },
)
