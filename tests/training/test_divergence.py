"""What must be true of the divergence detector.

* a loss that is not a number stops training at once
* a loss too far above its mean does after so many updates, and not before;
  the loss of an update is taken out of the mean of the epoch
* losses are read every so many updates, which does not change the results
* another detector continues from its state
* the rate is lowered permanently
"""

import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_deepnmt.training import Adam
from keras_deepnmt.training.divergence import (
    Diverged,
    DivergenceDetector,
    lower_rate,
)


def watch(detector, losses, tokens=None, start=0):
    """Shows a detector the logs of an epoch; gives what it raised."""
    iterations = keras.Variable(start, dtype="int32")
    detector.set_model(
        SimpleNamespace(optimizer=SimpleNamespace(iterations=iterations))
    )
    tokens = np.ones(len(losses)) if tokens is None else np.array(tokens)
    detector.on_train_begin()
    detector.on_epoch_begin(0)
    try:
        for update in range(len(losses)):
            seen = slice(update + 1)
            count = tokens[seen].sum()
            mean = (np.array(losses)[seen] * tokens[seen]).sum() / count
            logs = {"loss": np.float32(mean), "tokens": np.float32(count)}
            detector.on_train_batch_end(update, logs)
        detector.on_epoch_end(0)
    except Diverged as trouble:
        return trouble
    return None


class Unread:
    """A loss on a device, which counts how often it is read."""

    num_read = 0

    def __float__(self):
        Unread.num_read += 1
        return 3.0


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_loss_that_is_no_number_breaks_training_off(wrong):
    trouble = watch(DivergenceDetector(), [3.0, 2.0, wrong, 2.0], start=40)
    assert (trouble.step, trouble.first_bad_step) == (43, 43)
    assert str(trouble) == f"update 43: the loss is {wrong}"


def test_without_a_threshold_any_number_is_fine():
    assert watch(DivergenceDetector(), [1.0, 1e9, 1e30]) is None


def test_updates_far_above_the_mean_one_after_another_break_it_off():
    detector = DivergenceDetector(threshold=2.0, patience=3, decay=0.5)
    losses = [4.0, 2.0, 7.0, 7.0, 3.0, 7.0, 7.0, 7.0, 7.0]
    # The mean is 4, 3, then 3 with the bad ones left out: above 6 is bad.
    trouble = watch(detector, losses)
    assert (trouble.step, trouble.first_bad_step) == (8, 6)
    assert trouble.loss == pytest.approx(7.0, rel=1e-5)
    assert detector.state == [pytest.approx(3.0, rel=1e-5), 3]
    calm = DivergenceDetector(threshold=2.4, patience=3, decay=0.5)
    assert watch(calm, losses) is None


def test_the_loss_of_an_update_is_that_of_its_own_tokens():
    detector = DivergenceDetector(threshold=2.0, patience=1)
    # Few tokens of a high loss hardly move the mean of the epoch.
    losses, tokens = [3.0] * 5 + [7.0], [1000] * 5 + [10]
    trouble = watch(detector, losses, tokens)
    assert trouble.step == 6
    assert trouble.loss == pytest.approx(7.0, rel=1e-2)


@pytest.mark.parametrize("check_every", [1, 2, 3, 100])
def test_how_often_losses_are_read_changes_nothing_that_is_found(check_every):
    losses = [4.0, 2.0, 7.0, 7.0, 3.0, 7.0, 7.0, 7.0, 7.0, 2.0, math.nan]
    detector = DivergenceDetector(2.0, 3, 0.5, check_every=check_every)
    trouble = watch(detector, losses, start=40)
    assert (trouble.step, trouble.first_bad_step) == (48, 46)
    assert trouble.loss == pytest.approx(7.0, rel=1e-5)
    assert detector.state == [pytest.approx(3.0, rel=1e-5), 3]


@pytest.mark.parametrize("before", ["on_test_begin", "check"])
def test_losses_are_read_every_so_many_updates_and_before_they_count(before):
    detector = DivergenceDetector(check_every=4)
    watch(detector, [])
    Unread.num_read, found = 0, []
    for update in range(9):
        detector.on_train_batch_end(update, {"loss": Unread()})
        found.append(Unread.num_read)
    assert found == [0, 0, 0, 4, 4, 4, 4, 8, 8]
    getattr(detector, before)()
    assert Unread.num_read == 9


def test_another_detector_goes_on_from_the_state():
    def detector(state=()):
        made = DivergenceDetector(threshold=2.0, patience=3, decay=0.5)
        made.state = list(state)
        return made

    losses = [4.0, 2.0, 7.0, 7.0, 7.0]
    first = detector()
    assert watch(first, losses[:4]) is None
    assert watch(detector(first.state), losses[4:], start=4).step == 5
    assert watch(detector(), losses[4:], start=4) is None


def test_the_rate_is_lowered_again_and_again():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(Adam(0.5))
    for factor in (0.5, 0.25):
        lower_rate(model, factor)
    assert float(model.optimizer.learning_rate) == 0.0625
    model.compile(keras.optimizers.SGD(0.5))
    with pytest.raises(ValueError, match="cannot be lowered. Received: SGD"):
        lower_rate(model, 0.5)


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": 1.0}, {"patience": 0}, {"decay": 1.0}, {"check_every": 0}],
)
def test_an_argument_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match=f"`{list(wrong)[0]}` must"):
        DivergenceDetector(**wrong)
