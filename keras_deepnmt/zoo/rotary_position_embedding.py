"""Preset of Su et al. (2021): rotary positions."""

from keras_deepnmt.layers.rotary_position_embedding import (
    RotaryPositionEmbedding,
)
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Su et al. (2021)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_rope(arguments):
    """Queries and keys are turned by their positions."""
    return {"position_encoding": RotaryPositionEmbedding()}


describe_paper(
    PAPER,
    title="RoFormer: Enhanced Transformer with Rotary Position Embedding",
    links="[Su et al., 2021](https://arxiv.org/abs/2104.09864)",
    changes="turns queries and keys by their positions",
    presets="`transformer_rope_*`",
)
