"""Preset of Ainslie et al. (2023): grouped-query attention in the decoder."""

from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Ainslie et al. (2023)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_gqa(arguments):
    """Two heads of each attention of the decoder share keys and values."""
    num_heads = arguments["num_heads"]
    grouped = MultiHeadAttention(
        num_heads, num_key_value_heads=max(1, num_heads // 2)
    )
    return {
        "decoder_self_attention": grouped,
        "decoder_cross_attention": grouped,
    }


describe_paper(
    PAPER,
    title="GQA: Training Generalized Multi-Query Transformer Models from "
    "Multi-Head Checkpoints",
    links="[Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)",
    changes="shares keys and values among the heads of a group",
    presets="`transformer_gqa_*`",
)
