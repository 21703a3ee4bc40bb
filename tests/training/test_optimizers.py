"""What must be true of the optimizers.

* the factor multiplies the rate of any schedule, and of a number
* it is saved, and acts in the compiled step, on two devices and on JAX
* Nesterov walks the classic path, with a look ahead by the momentum
* AdamW's decay spares vectors
"""

import math
from pathlib import Path

import keras
import numpy as np
import pytest
from backend_program import BACKENDS, found_by

from keras_deepnmt.training.optimizers import Adam, AdamW, Nesterov
from keras_deepnmt.training.schedules import Constant, WarmUp


@pytest.mark.parametrize("rate", [0.5, WarmUp(Constant(1.0), 2)])
def test_the_factor_multiplies_the_rate(rate):
    optimizer = Adam(rate)
    assert float(optimizer.learning_rate) == 0.5
    optimizer.rate_factor.assign(0.125)
    assert float(optimizer.learning_rate) == 0.0625


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_numbers_that_are_not_finite_or_negative_are_refused(wrong):
    calls = {
        "learning_rate": lambda: Nesterov(wrong),
        "beta_2": lambda: Adam(0.1, beta_2=wrong),
        "weight_decay": lambda: AdamW(0.1, weight_decay=wrong),
        "global_clipnorm": lambda: Adam(0.1, global_clipnorm=wrong),
    }
    for name, call in calls.items():
        message = f"`{name}` must be finite and not negative. .*{name}={wrong}"
        with pytest.raises(ValueError, match=message):
            call()


def test_the_rate_itself_can_still_be_set():
    optimizer = Adam(0.5)
    optimizer.rate_factor.assign(0.5)
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.125


@pytest.mark.thorough
@pytest.mark.parametrize("strategy, backend", BACKENDS)
def test_the_factor_acts_in_the_compiled_step_and_is_saved(strategy, backend):
    script = Path(__file__).with_name("rate_on_backends.py")
    found = found_by(script, strategy, backend)
    # A rise over two updates to 0.5, and a factor of 1/4 after the first.
    np.testing.assert_allclose(found["moves"], [0.25, 0.125, 0.125, 0.125])
    np.testing.assert_allclose(found["restored"], [0.125])
    np.testing.assert_allclose(found["loaded"], [0.125])
    assert found["rate"] == 0.125


def gradient(weights):
    """Of a bowl that is steeper in one direction."""
    return np.array([1.0, 5.0]) * weights


def walk(optimizer, start, factors):
    """The weights after each update, with a factor on the rate of each."""
    variable = keras.Variable(np.array(start, "float32"))
    optimizer.build([variable])
    found = []
    for factor in factors:
        optimizer.rate_factor.assign(factor)
        slope = gradient(keras.ops.convert_to_numpy(variable))
        optimizer.apply([keras.ops.convert_to_tensor(slope, "float32")])
        found.append(keras.ops.convert_to_numpy(variable).copy())
    return np.array(found)


def test_nesterov_is_the_classic_path_seen_ahead_by_the_momentum():
    rate, momentum, start = 0.03, 0.9, [1.0, -2.0]
    factors = [1.0, 1.0, 0.1, 0.1, 0.01]
    classic, velocity, expected = np.array(start), np.zeros(2), []
    for factor in factors:
        slope = gradient(classic + momentum * velocity)
        velocity = momentum * velocity - rate * factor * slope
        classic = classic + velocity
        expected.append(classic + momentum * velocity)
    found = walk(Nesterov(rate, momentum), start, factors)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_nesterov_survives_serialization():
    optimizer = Nesterov(Constant(0.25), momentum=0.75)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is Nesterov and again.nesterov
    assert again.momentum == 0.75


def test_the_decay_spares_vectors():
    matrix = keras.Variable(np.full((2, 3), 8.0, "float32"))
    vector = keras.Variable(np.full((3,), 8.0, "float32"))
    optimizer = AdamW(0.5, weight_decay=0.25)
    optimizer.build([matrix, vector])
    optimizer.rate_factor.assign(0.5)
    optimizer.apply([keras.ops.zeros((2, 3)), keras.ops.zeros((3,))])
    # The decay follows the rate, factor included: 8 * (1 - 0.25 * 0.25).
    np.testing.assert_allclose(np.array(matrix), 7.5)
    np.testing.assert_allclose(np.array(vector), 8.0)
