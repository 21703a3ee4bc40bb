"""Preset of Wang et al. (2022): residual connections of very deep stacks."""

from keras_deepnmt.layers.deep_norm import DeepNorm
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Wang et al. (2022)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_deepnorm(arguments):
    """A larger weight of the residual branch, and smaller initial kernels."""
    return {"residual_connection": DeepNorm()}


describe_paper(
    PAPER,
    title="DeepNet: Scaling Transformers to 1,000 Layers",
    links="[Wang et al., 2022](https://arxiv.org/abs/2203.00555)",
    changes="weighs the residual branch and scales initial kernels, so "
    "that very deep post-norm stacks train",
    presets="`transformer_deepnorm_*`",
)
