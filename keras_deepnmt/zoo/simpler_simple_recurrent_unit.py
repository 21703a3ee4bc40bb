"""Preset of Kim et al. (2019): a recurrent decoder on a deep encoder."""

from keras_deepnmt.layers.simpler_simple_recurrent_unit import (
    SimplerSimpleRecurrentUnit,
)
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import changed, tiny

PAPER = "Kim et al. (2019)"
DEPTHS = {"num_encoder_layers": 6, "num_decoder_layers": 2}


@register_variant(Transformer, {"tiny": changed(tiny, **DEPTHS)}, PAPER)
def transformer_ssru(arguments):
    """A recurrent unit in place of self-attention; few decoder layers."""
    return {"decoder_self_attention": SimplerSimpleRecurrentUnit()}


describe_paper(
    PAPER,
    title="From Research to Production and Back: Ludicrously Fast Neural "
    "Machine Translation",
    links="[Kim et al., 2019](https://aclanthology.org/D19-5632)",
    changes="has a light recurrent unit in place of the decoder's "
    "self-attention",
    presets="`transformer_ssru_*`",
    # Ours, for small corpora.
    dimensions={
        "tiny": dict(
            hidden_dim=128,
            intermediate_dim=256,
            num_heads=4,
            dropout=0.3,
            **DEPTHS,
        ),
    },
)
