"""What must be true of the learning rate schedules.

* InverseSquareRoot rises linearly to the peak, then falls with the square root
* the first update has a rate above zero
* the Noam form is the same curve
* Constant is one rate; WarmUp lets any schedule rise and then follows it
* they survive serialization, alone and inside an optimizer
"""

import math

import keras
import numpy as np
import pytest

from keras_deepnmt.training.schedules import (
    Constant,
    InverseSquareRoot,
    WarmUp,
)


def reference(update, peak, warmup):
    if update <= warmup:
        return peak * update / warmup
    return peak * (warmup / update) ** 0.5


@pytest.mark.parametrize("update", [1, 2, 6, 7, 8, 28, 1000])
def test_rises_linearly_then_falls_with_the_square_root(update):
    schedule = InverseSquareRoot(0.05, 7)
    expected = reference(update, 0.05, 7)
    np.testing.assert_allclose(float(schedule(update - 1)), expected, rtol=1e-5)


def test_noam_form_is_equation_3_of_vaswani():
    schedule = InverseSquareRoot.noam(512, 4000, scale=2.0)
    for update in (1, 100, 4000, 4001, 50_000):
        expected = 2.0 * 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
        np.testing.assert_allclose(
            float(schedule(update - 1)), expected, rtol=1e-5
        )


def test_survives_serialization_inside_an_optimizer():
    optimizer = keras.optimizers.Adam(InverseSquareRoot(0.05, 7))
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    schedule = keras.optimizers.schedules.serialize(InverseSquareRoot(0.05, 7))
    schedule = keras.optimizers.schedules.deserialize(schedule)
    assert schedule.get_config()["warmup_steps"] == 7
    np.testing.assert_allclose(float(again.learning_rate), 0.05 / 7, rtol=1e-5)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_refuses_numbers_that_are_not_finite_and_above_zero(wrong):
    calls = {
        "peak_learning_rate": lambda: InverseSquareRoot(wrong, 7),
        "learning_rate": lambda: Constant(wrong),
        "hidden_dim": lambda: InverseSquareRoot.noam(wrong, 7),
        "scale": lambda: InverseSquareRoot.noam(512, 7, wrong),
    }
    for name, call in calls.items():
        message = f"`{name}` must be finite and above zero. .*{name}={wrong}"
        with pytest.raises(ValueError, match=message):
            call()
    for call in (
        lambda: InverseSquareRoot(0.1, wrong),
        lambda: InverseSquareRoot.noam(512, wrong),
        lambda: WarmUp(Constant(0.1), wrong),
    ):
        with pytest.raises(ValueError, match=f"warmup_steps={wrong}"):
            call()


@pytest.mark.parametrize(
    "schedule",
    [
        Constant(0.25),
        InverseSquareRoot.noam(512, 11),
        keras.optimizers.schedules.CosineDecay(0.5, 13, alpha=0.1),
        WarmUp(Constant(0.25), 3),
    ],
    ids=lambda schedule: type(schedule).__name__,
)
def test_a_warm_up_is_a_share_of_any_schedule(schedule):
    warmed = WarmUp(schedule, 5)
    again = keras.optimizers.schedules.deserialize(
        keras.optimizers.schedules.serialize(warmed)
    )
    for update in (1, 2, 4, 5, 6, 29):
        expected = min(update / 5, 1.0) * float(schedule(update - 1))
        for found in (warmed, again):
            np.testing.assert_allclose(
                float(found(update - 1)), expected, rtol=1e-6
            )


def test_a_constant_is_the_same_at_every_update():
    rates = {float(Constant(0.25)(step)) for step in (0, 1, 10_000)}
    assert rates == {0.25}


def test_refuses_what_is_no_schedule_or_no_rate():
    with pytest.raises(TypeError, match="Use Constant"):
        WarmUp(0.25, 5)
    with pytest.raises(ValueError, match="warmup_steps=0"):
        WarmUp(Constant(0.25), 0)
    with pytest.raises(ValueError, match="learning_rate=0.0"):
        Constant(0.0)
