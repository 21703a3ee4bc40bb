"""Preset of Shazeer (2019): multi-query attention in the decoder."""

from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Shazeer (2019)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_mqa(arguments):
    """All heads of the decoder's self-attention share keys and values.

    The paper has this in all attention; cross-attention is no slot.
    """
    return {
        "decoder_self_attention": MultiHeadAttention(
            arguments["num_heads"], num_key_value_heads=1
        )
    }


describe_paper(
    PAPER,
    links="[Shazeer, 2019](https://arxiv.org/abs/1911.02150)",
    changes="shares keys and values among all heads",
    presets="`transformer_mqa_*`",
)
