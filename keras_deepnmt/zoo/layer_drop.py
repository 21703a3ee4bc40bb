"""Preset of Fan et al. (2020): training skips blocks."""

from keras_deepnmt.layers.layer_drop import LayerDrop
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Fan et al. (2020)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_layer_drop(arguments):
    """Training skips each block with probability 0.2."""
    return {"layer_drop": LayerDrop(0.2)}


describe_paper(
    PAPER,
    title="Reducing Transformer Depth on Demand with Structured Dropout",
    links="[Fan et al., 2020](https://arxiv.org/abs/1909.11556)",
    changes="skips blocks in training",
    presets="`transformer_layer_drop_*`",
)
