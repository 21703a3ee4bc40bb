"""What must be true of the learning rate schedules.

* InverseSquareRoot rises linearly to the peak, then falls with the square root
* the first update has a rate above zero
* the Noam form is the same curve
* DecayToZero rises alike, decays along a line or a cosine, and ends at zero
* Constant is one rate; WarmUp lets any schedule rise and then follows it
* they survive serialization, alone and inside an optimizer
"""

import math

import keras
import numpy as np
import pytest

from keras_deepnmt.training.schedules import (
    Constant,
    DecayToZero,
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


def decay_to_zero(update, peak, warmup, total, shape):
    if update <= warmup:
        return peak * update / warmup
    fraction = min(1.0, (update - warmup) / max(1, total + 1 - warmup))
    if shape == "linear":
        return peak * (1 - fraction)
    return peak * (1 + math.cos(math.pi * fraction)) / 2


@pytest.mark.parametrize("shape", ["linear", "cosine"])
@pytest.mark.parametrize("total", [5, 7, 8, 100])
def test_decays_to_zero_at_the_end_of_training(shape, total):
    schedule = DecayToZero(0.05, 7, total, shape)
    config = keras.optimizers.schedules.serialize(schedule)
    again = keras.optimizers.schedules.deserialize(config)
    for update in (1, 6, 7, 8, 9, 50, 99, 100, 101, 1000):
        expected = decay_to_zero(update, 0.05, 7, total, shape)
        for rate in (schedule(update - 1), again(update - 1)):
            np.testing.assert_allclose(float(rate), expected, atol=1e-8)
    # Every update of the training moves the weights, none after it does.
    assert float(schedule(total - 1)) > 0.0
    assert total < 7 or float(schedule(total)) == pytest.approx(0, abs=1e-8)


def test_refuses_an_unknown_shape_of_decay():
    with pytest.raises(ValueError, match="linear.*Received: shape='square'"):
        DecayToZero(0.05, 7, 100, "square")


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
        "total_steps": lambda: DecayToZero(0.1, 7, wrong),
        "hidden_dim": lambda: InverseSquareRoot.noam(wrong, 7),
        "scale": lambda: InverseSquareRoot.noam(512, 7, wrong),
    }
    for name, call in calls.items():
        message = f"`{name}` must be finite and above zero. .*{name}={wrong}"
        with pytest.raises(ValueError, match=message):
            call()
    for call in (
        lambda: InverseSquareRoot(0.1, wrong),
        lambda: DecayToZero(0.1, wrong, 100),
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
