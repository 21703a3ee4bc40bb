"""Preset of Kasai et al. (2021): most layers are in the encoder."""

from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import changed, tiny

PAPER = "Kasai et al. (2021)"
DEPTHS = {"num_encoder_layers": 12, "num_decoder_layers": 1}


@register_variant(Transformer, {"tiny": changed(tiny, **DEPTHS)}, PAPER)
def transformer_deep_shallow(arguments):
    """A deep encoder and a single decoder layer, for faster translation."""
    return {}


describe_paper(
    PAPER,
    title="Deep Encoder, Shallow Decoder: Reevaluating Non-autoregressive "
    "Machine Translation",
    links="[Kasai et al., 2021](https://arxiv.org/abs/2006.10369)",
    changes="moves layers from the decoder to the encoder",
    presets="`transformer_deep_shallow_*`",
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
