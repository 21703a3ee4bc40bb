"""What must be true of the slots of deep stacks: a skipped block hands its
input to the block above, to aggregations and to fusions; a model that skips
blocks in training translates with all of them; a plain model has no new
weights, random states or operations; and a number is short for LayerDrop."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import (
    DeepNorm,
    FineGrainedLayerAttention,
    LayerAggregation,
    LayerDrop,
)
from keras_deepnmt.models import Transformer
from keras_deepnmt.models.training_step.training_state import seed_variables

SOURCE = np.array([[5, 6, 3], [7, 3, 0]], "int32")
TARGET = np.array([[2, 8, 9, 4], [2, 6, 0, 0]], "int32")
INPUTS = {"source_ids": SOURCE, "target_ids": TARGET}
ALWAYS = 1 - 1e-6  # a rate below 1


def small(**options):
    keras.utils.set_random_seed(1)
    return Transformer(11, 13, 8, 16, 2, 3, 2, dropout=0.0, **options)


@pytest.mark.parametrize(
    "slots",
    [
        {},
        {"encoder_fusion": FineGrainedLayerAttention(2, drop_connect=0.0)},
        {
            "encoder_aggregation": LayerAggregation("dense", dropout=0.0),
            "decoder_aggregation": LayerAggregation("linear", dropout=0.0),
        },
    ],
    ids=["plain", "fusion", "aggregation"],
)
def test_skipped_blocks_do_not_count_in_training_and_do_in_inference(slots):
    plain = small(**slots)
    model = small(layer_drop=LayerDrop(ALWAYS), **slots)
    model.set_weights(plain.get_weights())
    np.testing.assert_array_equal(model(INPUTS), plain(INPUTS))
    skipped = np.asarray(model(INPUTS, training=True))
    assert np.abs(skipped - plain(INPUTS)).max() > 1e-3
    for block in [*model.encoder_blocks, *model.decoder_blocks]:
        for weight in block.weights:
            weight.assign(2.0 * weight)
    np.testing.assert_array_equal(model(INPUTS, training=True), skipped)


def test_a_number_is_short_for_layer_drop():
    model = small(layer_drop=0.25)
    names = [f"encoder_block_{number}" for number in (1, 2, 3)]
    assert list(model.encoder_drops) == names
    assert {drop.rate for drop in model.encoder_drops.values()} == {0.25}
    assert len(model.decoder_drops) == 2
    again = Transformer.from_config(model.get_config())
    assert again.decoder_drops["decoder_block_2"].rate == 0.25
    # Each has a state of its own, which a checkpoint saves.
    plain = len(seed_variables(small()))
    assert len(seed_variables(model)) == plain + 5


def test_blocks_are_skipped_independently_with_a_seed_too():
    def states():
        model = small(layer_drop=LayerDrop(0.5, seed=3))
        drops = [*model.encoder_drops.values(), *model.decoder_drops.values()]
        return [tuple(np.asarray(d.seed_generator.state)) for d in drops]

    found = states()
    assert len(set(found)) == 5
    assert states() == found


def test_a_model_without_them_is_the_plain_one():
    plain = small()
    assert plain.encoder_drops == plain.decoder_drops == {}
    config = plain.get_config()
    for slot in ("residual_connection", "layer_drop", "kernel_initializer"):
        # As in a file of an earlier version.
        assert config.pop(slot) is None
    again = Transformer.from_config(config)
    assert [w.path for w in again.weights] == [w.path for w in plain.weights]


def test_deep_norm_has_the_weights_of_a_plain_model():
    model = small(residual_connection=DeepNorm(), layer_drop=0.1)
    plain = small()
    assert [w.path for w in model.weights] == [w.path for w in plain.weights]
    assert np.abs(model(INPUTS) - plain(INPUTS)).max() > 1e-3
