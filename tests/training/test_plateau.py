"""What must be true of DivideOnPlateau.

* the rate is divided at each increase, or at each epoch after the first one
* training stops when the rate falls below the minimum, not while it warms up
* a restart at any epoch, with its history, continues exactly, also in a run
  that continues after a shorter last epoch
* without a history it continues from the optimizer's factor
* it composes with a schedule, and refuses an optimizer without a factor
"""

import keras
import numpy as np
import pytest

from keras_deepnmt.training.optimizers import Nesterov
from keras_deepnmt.training.plateau import DivideOnPlateau
from keras_deepnmt.training.schedules import Constant, WarmUp

LOSSES = [5.0, 4.0, 4.5, 4.2, 4.2, 4.3, 4.1, 4.0]


def model_with(schedule):
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile(Nesterov(schedule), "mse")
    return model


class Half(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of a user, which nobody can make again from a name."""

    def __call__(self, step):
        return 0.5


@pytest.fixture(scope="module")
def model():
    return model_with(Constant(0.25))


def rates(model, callback, losses, first=0):
    """The rate after each epoch, to the end or the stop."""
    callback.set_model(model)
    model.stop_training = False
    callback.on_train_begin()
    found = []
    for epoch, loss in enumerate(losses, start=first):
        if model.stop_training:
            break
        callback.on_epoch_end(epoch, {"val_loss": loss})
        found.append(float(model.optimizer.learning_rate))
    return found


def test_divides_at_each_increase(model):
    found = rates(model, DivideOnPlateau(10, 0.0, history=[]), LOSSES)
    tenths = [0, 0, 1, 1, 1, 2, 2, 2]
    np.testing.assert_allclose(found, 0.25 / 10.0 ** np.array(tenths), 1e-6)
    assert not model.stop_training


def test_divides_at_every_epoch_after_the_first_increase(model):
    callback = DivideOnPlateau(2, 0.0, keep_dividing=True, history=[])
    found = rates(model, callback, LOSSES)
    halves = [0, 0, 1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(found, 0.25 / 2.0 ** np.array(halves), 1e-6)


def test_stops_when_the_rate_is_under_the_minimum(model):
    rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    found = rates(model, DivideOnPlateau(10, 1e-4, history=[]), rising)
    np.testing.assert_allclose(found[-1], 2.5e-5, 1e-5)
    assert len(found) == 5 and model.stop_training


def test_a_low_rate_that_was_never_divided_is_no_reason_to_stop():
    model = model_with(WarmUp(Constant(0.25), 10_000))
    rates(model, DivideOnPlateau(minimum=1e-3), [3.0, 2.0, 1.0])
    assert float(model.optimizer.learning_rate) < 1e-3
    assert not model.stop_training


def reason_after(num_increases, model, divide_by, minimum):
    history = [(n, {"val_loss": float(n)}) for n in range(num_increases + 1)]
    callback = DivideOnPlateau(divide_by, minimum, history=history)
    rates(model, callback, [])
    assert callback.num_divisions == num_increases
    return callback.reason


@pytest.mark.parametrize(
    "peak, divide_by, minimum, num_increases",
    [
        (0.01, 10, 1e-4, 2),
        (1, 10, 1e-4, 4),
        (0.01, 2, 0.00125, 3),
        (0.005, 2, 0.00125, 2),
        (0.0008, 2, 1e-4, 3),
        (0.0004, 2, 1e-4, 2),
        (0.0002, 2, 1e-4, 1),
        (0.0002, 2, 5e-5, 2),
    ],
)
def test_goes_on_at_the_minimum_and_stops_under_it(
    peak, divide_by, minimum, num_increases
):
    setting = model_with(WarmUp(Constant(peak), 1)), divide_by, minimum
    assert reason_after(num_increases, *setting) is None
    assert "is below" in reason_after(num_increases + 1, *setting)


def test_a_warm_up_makes_no_divided_rate_too_low():
    setting = model_with(WarmUp(Constant(0.001), 4000)), 10, 1e-4
    setting[0].optimizer.iterations.assign(1999)
    assert reason_after(1, *setting) is None
    assert "rate, 1e-05, is below" in reason_after(2, *setting)


@pytest.mark.parametrize("keep_dividing", [False, True])
@pytest.mark.parametrize("stop", range(len(LOSSES)))
def test_a_restart_goes_on_exactly(model, stop, keep_dividing):
    def callback(history):
        return DivideOnPlateau(3, 0.0, "val_loss", keep_dividing, history)

    whole = rates(model, callback([]), LOSSES)
    history = [(e, {"val_loss": loss}) for e, loss in enumerate(LOSSES)]
    # Any factor that an interrupted epoch has left.
    model.optimizer.rate_factor.assign(0.75)
    rest = rates(model, callback(history[:stop]), LOSSES[stop:], stop)
    assert whole[stop:] == rest


def test_a_validation_made_twice_counts_once(model):
    callback = DivideOnPlateau(10, 0.0, history=[])
    rates(model, callback, [1.0, 2.0])
    callback.on_epoch_end(1, {"val_loss": 2.0})
    np.testing.assert_allclose(float(model.optimizer.learning_rate), 0.025)


def test_a_shorter_last_epoch_and_the_one_it_grows_into_are_two(model):
    """Both have the same number, and count in the process and after it."""
    history = [
        (0, {"val_loss": 3.0, "step": 100}),
        (1, {"val_loss": 2.0, "step": 150}),
        (1, {"val_loss": 2.5, "step": 200}),
    ]
    live = DivideOnPlateau(10, 0.0, history=history[:2])
    live.set_model(model)
    live.on_train_begin()
    live.on_epoch_end(*history[2])
    resumed = DivideOnPlateau(10, 0.0, history=history)
    assert live.num_divisions == resumed.num_divisions == 1


def test_fitting_again_goes_on_from_the_factor(model):
    model.optimizer.rate_factor.assign(0.5)
    callback = DivideOnPlateau(10, 0.0)
    np.testing.assert_allclose(rates(model, callback, [1.0]), [0.125])
    np.testing.assert_allclose(rates(model, callback, [2.0], 1), [0.0125])


def test_a_run_that_had_stopped_says_so(model):
    history = [(epoch, {"val_loss": float(epoch)}) for epoch in range(5)]
    rates(model, DivideOnPlateau(10, 1e-4, history=history), [])
    assert model.stop_training
    rates(model, DivideOnPlateau(10, 1e-4, history=history[:-1]), [])
    assert not model.stop_training


def test_refuses_what_cannot_work(model):
    with pytest.raises(ValueError, match="divide_by=1"):
        DivideOnPlateau(1)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"minimum={wrong}"):
            DivideOnPlateau(minimum=wrong)
    callback = DivideOnPlateau(monitor="val_bleu")
    with pytest.raises(ValueError, match="'val_bleu', logged: .'val_loss'"):
        rates(model, callback, [1.0])
    plain = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    plain.compile("sgd", "mse")
    with pytest.raises(ValueError, match="Received: SGD. Use Adam"):
        rates(plain, DivideOnPlateau(), [1.0])


@pytest.mark.parametrize("schedule", [Half(), WarmUp(Half(), 10)])
def test_any_schedule_composes(schedule):
    callback = DivideOnPlateau(2, 0.2, history=[])
    model = model_with(schedule)
    assert len(rates(model, callback, [1.0, 2.0, 3.0, 4.0])) == 3
    assert "0.125, is below" in callback.reason


def test_a_rate_that_is_set_later_is_compared():
    callback = DivideOnPlateau(2, 0.2, history=[])
    model = model_with(WarmUp(Half(), 10))
    model.optimizer.learning_rate = Constant(0.3)
    assert len(rates(model, callback, [1.0, 2.0])) == 2
    assert "0.15, is below" in callback.reason
