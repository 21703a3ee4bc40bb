"""What must be true of the average of the weights.

* `fit` validates the average and continues with the raw weights, also when it
  was interrupted, even amid an assignment, and a checkpoint holds both
* before the first update, and without averages, nothing changes
* they are read from the file of a checkpoint without the model that trained
"""

import keras
import numpy as np
import pytest

from keras_deepnmt.training import weight_average
from keras_deepnmt.training.optimizers import Adam, Nesterov
from keras_deepnmt.training.weight_average import (
    ValidateAverage,
    averaged_weights,
    load_averages,
)


@pytest.fixture
def model():
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile(Nesterov(0.1, 0.5, average_momentum=0.5), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def fit(model, *callbacks):
    ones = np.ones((3, 2)), np.ones((3, 1))
    return model.fit(
        *ones, validation_data=ones, callbacks=list(callbacks), verbose=0
    )


def test_a_validation_that_is_broken_off_leaves_the_raw_weights(model):
    class Interrupt(keras.callbacks.Callback):
        def on_test_batch_begin(self, batch, logs=None):
            raise KeyboardInterrupt

    fit(model, ValidateAverage())
    fit(model, ValidateAverage())
    before = model.get_weights()
    validate = ValidateAverage()
    validate.set_model(model)
    with pytest.raises(KeyboardInterrupt):
        model.evaluate(
            np.ones((3, 2)), callbacks=[validate, Interrupt()], verbose=0
        )
    assert np.any(before[0] != model.get_weights()[0])
    validate.on_train_end()
    np.testing.assert_equal(model.get_weights(), before)


def interrupt_assignment(monkeypatch, number):
    """Ctrl-C when the assignment of this number is half done, once."""
    assign, calls = weight_average._assign, []

    def assign_half(model, values):
        calls.append(values)
        if len(calls) == number:
            first, value = model.trainable_variables[0], values[0]
            first.assign(keras.ops.convert_to_numpy(value))
            raise KeyboardInterrupt
        assign(model, values)

    monkeypatch.setattr(weight_average, "_assign", assign_half)


# The averages are assigned first, and then the raw weights.
@pytest.mark.parametrize("number", [1, 2])
def test_an_assignment_that_is_broken_off_leaves_the_raw_weights(
    model, number, monkeypatch
):
    fit(model)
    fit(model)
    before = model.get_weights()
    with monkeypatch.context() as patch:
        interrupt_assignment(patch, number)
        with pytest.raises(KeyboardInterrupt), averaged_weights(model):
            assert np.any(before[0] != model.get_weights()[0])
    np.testing.assert_equal(model.get_weights(), before)
    validate = ValidateAverage()
    validate.set_model(model)
    ones = np.ones((3, 2)), np.ones((3, 1))
    with monkeypatch.context() as patch:
        interrupt_assignment(patch, number)
        with pytest.raises(KeyboardInterrupt):
            model.evaluate(*ones, callbacks=[validate], verbose=0)
        validate.on_train_end()
    np.testing.assert_equal(model.get_weights(), before)


def test_without_an_update_or_an_average_nothing_changes(model):
    before = model.get_weights()
    with averaged_weights(model):
        np.testing.assert_equal(model.get_weights(), before)
    model.compile(Adam(0.1), "mse")
    fit(model, ValidateAverage())
    after = model.get_weights()
    assert not model.optimizer.averages
    with averaged_weights(model):
        np.testing.assert_equal(model.get_weights(), after)


@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize("updates", [0, 2])
def test_are_read_from_the_file_of_a_checkpoint(
    model, tmp_path, is_scaled, updates
):
    def optimizer():
        return Nesterov(0.1, 0.5, average_momentum=0.5)

    if is_scaled:
        model.compile(keras.optimizers.LossScaleOptimizer(optimizer()), "mse")
        model.optimizer.build(model.trainable_variables)
    for _ in range(updates):
        fit(model)
    model.save_weights(tmp_path / "step.weights.h5")
    raw = model.get_weights()
    with averaged_weights(model):
        averages = model.get_weights()
    load_averages(
        tmp_path / "step.weights.h5", optimizer(), model.trainable_variables
    )
    np.testing.assert_equal(model.get_weights(), averages)
    assert np.array_equal(raw[0], averages[0]) == (updates == 0)


def test_weights_in_bfloat16_are_refused():
    optimizer = Adam(0.1, average_momentum=0.999)
    weight = keras.Variable(np.ones((2, 3)), dtype="bfloat16", name="kernel")
    with pytest.raises(ValueError, match="kernel in bfloat16. Use the dtype"):
        optimizer.build([weight])


def test_survives_serialization_and_refuses_what_is_no_share(model):
    config = keras.optimizers.serialize(model.optimizer)
    again = keras.optimizers.deserialize(config)
    assert again.average_momentum == 0.5
    for momentum in (0.0, 1.0, -0.5):
        with pytest.raises(ValueError, match=f"average_momentum={momentum}"):
            Adam(0.1, average_momentum=momentum)
