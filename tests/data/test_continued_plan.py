"""What must be true of batches that change in the middle of a training.

* the epoch in which they change has each pair as often as any other
* the batches before are the old ones, all others have the new shapes
* a plan that is made again agrees, wherever it is asked
* a change at the end of an epoch begins the next one
"""

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.batches.continued_plan import ContinuedPlan

OLD = (BatchShape(7, 9, 9), BatchShape(4, 13, 17))
NEW = (BatchShape(3, 13, 17),)
LENGTHS = np.random.default_rng(3).integers(2, (14, 18), (101, 2))
LENGTHS = LENGTHS.astype("uint16")
WEIGHTS = np.random.default_rng(4).uniform(0, 3, 101)


def continued(*starts, weights=None):
    plan = BatchPlan(LENGTHS, OLD, 5, weights)
    for number, start in enumerate(starts):
        shapes = (NEW, OLD)[number % 2]
        plan = ContinuedPlan(plan, start, LENGTHS, shapes, weights)
    return plan


def rows_by_epoch(plan, epochs):
    rows, step = [[] for _ in range(epochs)], 0
    while plan.place(step)[0] < epochs:
        rows[plan.place(step)[0]] += plan.batch(step)[1].tolist()
        step += 1
    return [sorted(one) for one in rows]


@pytest.mark.parametrize(
    "starts", [(1,), (5,), (30,), (5, 8), (5, 8, 9), (2, 60), (4, 4)]
)
def test_each_pair_is_used_once_in_every_epoch(starts):
    plan = continued(*starts)
    assert rows_by_epoch(plan, 4) == [list(range(101))] * 4


def test_with_weights_the_epoch_has_the_pairs_that_it_would_have_had():
    unchanged = continued(weights=WEIGHTS)
    for start in (1, 7, unchanged.batches_per_epoch + 3):
        plan = continued(start, weights=WEIGHTS)
        epoch = plan.place(start)[0]
        expected = rows_by_epoch(unchanged, epoch + 1)
        assert rows_by_epoch(plan, epoch + 1) == expected


def test_batches_before_are_the_old_ones_and_later_ones_have_the_new_shapes():
    old, plan = continued(), continued(6)
    for step in range(6):
        assert plan.place(step) == old.place(step)
        assert plan.batch(step)[0] == old.batch(step)[0]
        np.testing.assert_array_equal(plan.batch(step)[1], old.batch(step)[1])
    for step in range(6, 90):
        shape, rows = plan.batch(step)
        assert shape in NEW and 1 <= len(rows) <= shape.batch_size
        assert LENGTHS[rows, 0].max() <= shape.source_length


def test_a_plan_that_is_made_again_agrees_wherever_it_is_asked():
    plan, steps = continued(5, 40), list(range(120))
    batches = [plan.batch(step)[1] for step in steps]
    other = continued(5, 40)
    for step in np.random.default_rng(1).permutation(steps).tolist():
        np.testing.assert_array_equal(other.batch(step)[1], batches[step])


def test_a_change_at_the_end_of_an_epoch_begins_the_next_one():
    start = continued().batches_per_epoch
    plan = continued(start)
    new = BatchPlan(LENGTHS, NEW, 5)
    for step in range(10):
        # The second epoch of the new batches.
        np.testing.assert_array_equal(
            plan.batch(start + step)[1],
            new.batch(new.batches_per_epoch + step)[1],
        )
