"""What must be true of relative positions in a Transformer: every attention to
other positions of a stack has them, cross-attention has not, a decoder's are of
earlier tokens, and an attention that cannot apply them is refused by name."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import (
    HybridSelfAttention,
    LayerAggregation,
    MultiHeadAttention,
    MultiLayerAttention,
    RelativePositionBias,
    RotaryPositionEmbedding,
    TransformerDecoderBlock,
)
from keras_deepnmt.models import Transformer

BIAS = {"RelativePositionBias": {"num_buckets": 4, "max_distance": 3}}


def small(**options):
    return Transformer(11, 13, 8, 16, 2, 2, 2, **options)


def attentions(model):
    return [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, MultiHeadAttention)
    ]


def test_every_attention_but_cross_attention_has_them():
    hybrid = HybridSelfAttention(2, branches=("forward", "local"))
    aggregation = LayerAggregation(
        "iterative", function="attention", num_heads=2
    )
    model = small(
        position_encoding=BIAS,
        encoder_self_attention=hybrid,
        decoder_self_attention=MultiLayerAttention(
            2, num_layers=1, attention=hybrid, function="attention"
        ),
        encoder_aggregation=aggregation,
        decoder_aggregation=aggregation,
    )
    found = {layer.path: layer.position for layer in attentions(model)}
    # Two blocks and a node a side, and two attentions to the source.
    assert len(found) == 8
    for path, position in found.items():
        if path.endswith("cross_attention"):
            assert position is None
            continue
        assert position.num_buckets == 4
        assert position.bidirectional == path.startswith("encoder"), path


def test_embeddings_have_no_positions_and_other_models_no_relative_ones():
    model = small(position_encoding="RotaryPositionEmbedding")
    assert model.position_encoding is model.target_position_encoding is None
    for encoding in ("sinusoidal", None):
        plain = small(position_encoding=encoding)
        assert all(layer.position is None for layer in attentions(plain))


def test_a_slot_keeps_the_positions_that_it_was_given():
    own = MultiHeadAttention(2, relative_position=RotaryPositionEmbedding(7.0))
    model = small(position_encoding=BIAS, encoder_self_attention=own)
    first, *_ = attentions(model)
    assert first.position.max_wavelength == 7.0
    named = {
        "MultiHeadAttention": {
            "relative_position": {
                "RotaryPositionEmbedding": {"max_wavelength": 7.0}
            }
        }
    }
    model = small(encoder_self_attention=named)
    assert attentions(model)[0].position.max_wavelength == 7.0
    assert isinstance(model.position_encoding, keras.layers.Layer)


def test_the_order_of_the_source_matters():
    source = np.array([[5, 6, 7, 3]])
    model = small(position_encoding=RelativePositionBias(4, 3))
    for layer in attentions(model):
        if layer.position is not None:
            layer.position.table.assign([[1.0, 2], [3, 4], [5, 6], [7, 8]])
    states, swapped = (
        np.asarray(model.encode(ids)["output"])[:, [0, 1]]
        for ids in (source, source[:, [1, 0, 2, 3]])
    )
    assert np.abs(states - swapped[:, [1, 0]]).max() > 1e-3


@keras.saving.register_keras_serializable(package="test_relative_positions")
class OwnAttention(keras.layers.Layer):
    """Attends to the position itself alone."""

    def call(self, query, attention_mask=None):
        return query


def test_an_attention_that_cannot_apply_them_is_refused():
    with pytest.raises(ValueError, match="RotaryPosition.*: OwnAttention. Der"):
        small(
            position_encoding="RotaryPositionEmbedding",
            encoder_self_attention=OwnAttention(),
        )
    with pytest.raises(ValueError, match="`attention` holds one.*OwnAttention"):
        MultiLayerAttention(
            2,
            attention=OwnAttention(),
            relative_position=RotaryPositionEmbedding(),
        )


def test_a_block_alone_takes_them():
    block = TransformerDecoderBlock(
        2, 16, relative_position=RotaryPositionEmbedding()
    )
    block(np.zeros((2, 3, 8), "float32"), np.zeros((2, 5, 8), "float32"))
    assert isinstance(block.attention.position, RotaryPositionEmbedding)
    assert block.cross_attention.position is None
