"""Preset of Zhang et al. (2019): initial kernels that fall with the depth."""

from keras_deepnmt.layers.depth_scaled_initializer import DepthScaledInitializer
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import tiny

PAPER = "Zhang et al. (2019)"


@register_variant(Transformer, {"tiny": tiny}, PAPER)
def transformer_ds_init(arguments):
    """Kernels start the smaller, the higher their block is."""
    return {"kernel_initializer": DepthScaledInitializer()}


describe_paper(
    PAPER,
    title="Improving Deep Transformer with Depth-Scaled Initialization and "
    "Merged Attention",
    links="[Zhang et al., 2019](https://aclanthology.org/D19-1083)",
    changes="starts with smaller kernels in higher blocks, so that deep "
    "post-norm stacks train",
    presets="`transformer_ds_init_*`",
)
