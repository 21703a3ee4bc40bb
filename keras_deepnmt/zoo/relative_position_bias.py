"""Preset of Raffel et al. (2020): the position biases of T5."""

from keras_deepnmt.layers.relative_position_bias import RelativePositionBias
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Raffel et al. (2020)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_t5_bias(arguments):
    """Attention has a learned number for each bucket of distances and head.

    All attentions of a stack share them, as in the paper.
    """
    return {"position_encoding": RelativePositionBias(shared=True)}


describe_paper(
    PAPER,
    title="Exploring the Limits of Transfer Learning with a Unified "
    "Text-to-Text Transformer",
    links="[Raffel et al., 2020](https://arxiv.org/abs/1910.10683)",
    changes="adds a learned number for each bucket of distances to attention",
    presets="`transformer_t5_bias_*`",
)
