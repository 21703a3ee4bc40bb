"""What must be true of batches in stages.

* a stage has its own weights and epochs, and begins with a whole one
* the batch of a step depends on nothing but the arguments
"""

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.batches.staged_plan import StagedPlan

ROWS = 60
LENGTHS = np.array([[3, 4], [8, 9]] * (ROWS // 2))
SHAPES = (BatchShape(8, 4, 4), BatchShape(4, 8, 9))
# The first half alone, all, and the second half twice.
WEIGHTS = [np.repeat(pair, ROWS // 2) for pair in ([1, 0], [1, 1], [0, 2])]


def make_plan(starts):
    return StagedPlan(LENGTHS, SHAPES, 5, WEIGHTS, starts)


@pytest.fixture
def plan():
    return make_plan([0, 12, 26])


def rows_of(plan, start, number):
    batches = [plan.batch(step)[1] for step in range(start, start + number)]
    return np.bincount(np.concatenate(batches), minlength=ROWS)


def test_each_stage_has_its_weights(plan):
    sizes = list(map(plan.batches_in_epoch, range(3)))
    np.testing.assert_array_equal(rows_of(plan, 0, sizes[0]), WEIGHTS[0])
    np.testing.assert_array_equal(rows_of(plan, 12, sizes[1]), WEIGHTS[1])
    np.testing.assert_array_equal(rows_of(plan, 26, sizes[2]), WEIGHTS[2])
    # Its last epoch may be cut by the next stage.
    assert not rows_of(plan, 0, 12)[ROWS // 2 :].any()


def test_epochs_are_counted_over_all_stages(plan):
    first, second, _ = map(plan.batches_in_epoch, range(3))
    assert plan.place(11) == divmod(11, first)
    epochs = -(-12 // first)
    assert plan.place(12) == (epochs, 0)
    assert plan.place(26) == (epochs + -(-14 // second), 0)
    epoch, rows = plan.rows_left(13)
    assert epoch == epochs
    expected = WEIGHTS[1] - rows_of(plan, 12, 1)
    np.testing.assert_array_equal(np.bincount(rows, minlength=ROWS), expected)


def test_a_step_alone_decides_about_its_batch(plan):
    steps = [40, 3, 12, 26, 11, 25, 1000]
    again = make_plan([0])
    again.begin([0, 12, 26])
    for step in steps:
        shape, rows = again.batch(step)
        assert shape == plan.batch(step)[0]
        np.testing.assert_array_equal(rows, plan.batch(step)[1])
    # What comes later changes nothing.
    open_plan = make_plan([0, 12])
    for step in range(26):
        np.testing.assert_array_equal(
            open_plan.batch(step)[1], plan.batch(step)[1]
        )
    with pytest.raises(IndexError):
        plan.batch(-1)


def test_the_first_stage_is_a_plan_without_stages(plan):
    alone = BatchPlan(LENGTHS, SHAPES, 5, WEIGHTS[0])
    for step in range(12):
        np.testing.assert_array_equal(plan.batch(step)[1], alone.batch(step)[1])
