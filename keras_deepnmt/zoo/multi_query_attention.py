"""Preset of Shazeer (2019): multi-query attention."""

from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Shazeer (2019)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_mqa(arguments):
    """All heads of an attention share keys and values, in all attentions."""
    layer = MultiHeadAttention(arguments["num_heads"], num_key_value_heads=1)
    return dict.fromkeys(
        (
            "encoder_self_attention",
            "decoder_self_attention",
            "decoder_cross_attention",
        ),
        layer,
    )


describe_paper(
    PAPER,
    title="Fast Transformer Decoding: One Write-Head is All You Need",
    links="[Shazeer, 2019](https://arxiv.org/abs/1911.02150)",
    changes="shares keys and values among all heads",
    presets="`transformer_mqa_*`",
)
