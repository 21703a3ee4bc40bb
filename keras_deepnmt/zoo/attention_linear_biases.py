"""Preset of Press et al. (2022): linear biases of attention."""

from keras_deepnmt.layers.attention_linear_biases import AttentionLinearBiases
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Press et al. (2022)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_alibi(arguments):
    """Attention falls in proportion to the distance, by a slope a head."""
    return {"position_encoding": AttentionLinearBiases()}


describe_paper(
    PAPER,
    title="Train Short, Test Long: Attention with Linear Biases Enables Input "
    "Length Extrapolation",
    links="[Press et al., 2022](https://arxiv.org/abs/2108.12409)",
    changes="lowers attention in proportion to the distance of tokens",
    presets="`transformer_alibi_*`",
)
