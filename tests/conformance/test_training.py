"""One compiled update moves every weight; the result saves and loads."""

import functools

import keras
import numpy as np
import pytest
from conformance_checks import assert_every_weight_moved


@pytest.fixture
def trained(model_entry):
    """`(weights before, model)`: compiled, updated twice."""
    return trained_model(model_entry)


@functools.cache
def trained_model(entry):
    # A narrow gate can start dead, and then nothing behind it would move.
    keras.utils.set_random_seed(1)
    model = entry.make(dropout=0.1)
    model.compile("adam")
    before = model.get_weights()
    inputs, labels = entry.example()
    model.fit(inputs, labels, batch_size=4, epochs=2, verbose=0)
    return before, model


def test_a_compiled_update_moves_every_weight(trained):
    before, model = trained
    assert_every_weight_moved(before, model)
    assert model.num_compilations == 1


def test_a_trained_model_saves_and_loads(trained, model_entry, tmp_path):
    _, model = trained
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    inputs, labels = model_entry.example()
    np.testing.assert_array_equal(model(inputs), again(inputs))
    # The compiled state came along: same optimizer, same loss.
    assert again.compiled
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations)
    for old, new in zip(
        model.optimizer.variables, again.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(old, new)
    assert again.get_compile_config() == model.get_compile_config()
