"""Preset of Shaw et al. (2018): relative position representations."""

from keras_deepnmt.layers.relative_position_representations import (
    RelativePositionRepresentations,
)
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Shaw et al. (2018)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_shaw(arguments):
    """Keys and values have a learned vector for each distance."""
    return {"position_encoding": RelativePositionRepresentations()}


describe_paper(
    PAPER,
    title="Self-Attention with Relative Position Representations",
    links="[Shaw et al., 2018](https://arxiv.org/abs/1803.02155)",
    changes="adds a learned vector for each distance to keys and values",
    presets="`transformer_shaw_*`",
)
