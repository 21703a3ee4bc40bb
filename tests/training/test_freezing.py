"""What must be true of frozen weights.

* they do not move by a bit, all others do
* the optimizer holds no state for them
* a pattern is a path without the model's name, and must match
"""

import keras
import numpy as np
import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.models import Transformer
from keras_deepnmt.training.optimizers import Adam
from keras_deepnmt.training.transfer import freeze


def make_model():
    return Transformer(11, 13, 8, 16, 2, 1, 1)


@pytest.mark.thorough
def test_frozen_weights_do_not_move_and_the_others_do():
    model = make_model()
    frozen = freeze(model, ["encoder*", "*/layer_norm/gamma"])
    model.compile(Adam(0.01, average_momentum=0.5), jit_compile=False)
    before = {w.path: w.numpy() for w in model.weights}
    random = np.random.default_rng(0)
    ids = random.integers(4, 11, (3, 5), "int32")
    inputs = {"source_ids": ids, "target_ids": ids}
    model.fit(inputs, ids[:, ::-1], batch_size=3, epochs=2, verbose=0)
    still = [
        w.path for w in model.weights if np.all(w.numpy() == before[w.path])
    ]
    assert still == frozen and 16 < len(still) < len(model.weights)
    # Two moments, the average, the count, the rate and its factor.
    trained = len(model.weights) - len(frozen)
    assert len(model.optimizer.variables) == 3 * trained + 3


def test_paths_are_those_inside_the_model():
    model = keras.Sequential(
        [
            keras.layers.Input((2,)),
            keras.layers.Dense(3, name="first"),
            keras.layers.Dense(1, name="last"),
        ],
        name="whole",
    )
    assert freeze(model, ["first/*"]) == ["first/kernel", "first/bias"]
    assert [w.path for w in model.trainable_weights] == [
        "whole/last/kernel",
        "whole/last/bias",
    ]


def test_without_patterns_nothing_is_frozen():
    assert freeze(make_model(), []) == []


def test_a_pattern_that_matches_nothing_is_refused_with_the_nearest():
    said = "matches 'encoder_block_2/attention/key/kernel'. The nearest is "
    said += '"encoder_block_1/attention/key/kernel"'
    model = make_model()
    with pytest.raises(UserError, match=said):
        freeze(model, ["*bias", "encoder_block_2/attention/key/kernel"])
    assert len(model.trainable_weights) == len(model.weights)


def test_refuses_to_freeze_everything_or_too_late():
    model = make_model()
    with pytest.raises(UserError, match="match all 41"):
        freeze(model, ["*"])
    model.compile("sgd")
    with pytest.raises(ValueError, match="must not be compiled"):
        freeze(model, ["encoder*"])
