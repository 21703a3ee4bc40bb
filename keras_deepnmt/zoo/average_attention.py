"""Preset of Zhang et al. (2018): average attention in the decoder."""

from keras_deepnmt.layers.average_attention import AverageAttention
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Zhang et al. (2018)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_aan(arguments):
    """The decoder averages earlier positions in place of self-attention."""
    return {
        "decoder_self_attention": AverageAttention(
            arguments["intermediate_dim"]
        )
    }


describe_paper(
    PAPER,
    title="Accelerating Neural Transformer via an Average Attention Network",
    links="[Zhang et al., 2018](https://arxiv.org/abs/1805.00631)",
    changes="averages earlier positions in place of the decoder's "
    "self-attention",
    presets="`transformer_aan_*`",
)
