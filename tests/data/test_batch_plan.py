"""What must be true of BatchPlan and of the orders under it.

* An epoch holds every pair once, in a batch shape that contains it.
* A batch is a function of (seed, step): a fresh plan, a running one and one
  that jumps agree, also across the end of an epoch and from many threads.
* Epochs and seeds differ; the order is the committed one on every machine.
* Batches of a batch shape differ by at most one row.
* Weights repeat rows as often as they say, and always the same number.
* The expected padding is the one of the batches really made.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    BatchShape,
    choose_batch_shapes,
)
from keras_deepnmt.data.batches.epoch_order import (
    shuffled_order,
    weighted_repeats,
)

BATCH_SHAPES = (
    BatchShape(7, 5, 6),
    BatchShape(5, 11, 9),
    BatchShape(3, 13, 17),
)


def corpus(pairs=211, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(2, (14, 18), (pairs, 2)).astype("uint16")


LENGTHS = corpus()


def epoch_rows(plan, epoch):
    steps = range(plan.batches_per_epoch)
    first = epoch * plan.batches_per_epoch
    return np.concatenate([plan.batch(first + step)[1] for step in steps])


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("epoch", [0, 1, 17])
def test_an_epoch_holds_every_pair_once(epoch, shuffle):
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=3, shuffle=shuffle)
    assert sorted(epoch_rows(plan, epoch).tolist()) == list(range(211))


def test_pairs_fit_their_batch_shape_and_its_rows():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=3)
    for step in range(plan.batches_per_epoch):
        batch_shape, rows = plan.batch(step)
        assert rows.dtype == np.int64
        assert 1 <= len(rows) <= batch_shape.batch_size
        assert LENGTHS[rows, 0].max() <= batch_shape.source_length
        assert LENGTHS[rows, 1].max() <= batch_shape.target_length


def test_a_fresh_plan_continues_where_a_running_one_stands():
    running = BatchPlan(LENGTHS, BATCH_SHAPES, seed=5)
    steps = 3 * running.batches_per_epoch + 2
    batches = [running.batch(step) for step in range(steps)]
    for step in (0, 1, steps // 2, steps - 3, steps - 1):
        batch_shape, rows = BatchPlan(LENGTHS, BATCH_SHAPES, seed=5).batch(step)
        assert batch_shape == batches[step][0]
        np.testing.assert_array_equal(rows, batches[step][1])


def test_steps_may_be_asked_in_any_order_by_many_threads():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=5)
    steps = np.random.default_rng(1).permutation(4 * plan.batches_per_epoch)
    with ThreadPoolExecutor(8) as pool:
        found = dict(
            zip(
                steps.tolist(),
                pool.map(plan.batch, steps.tolist()),
                strict=True,
            )
        )
    other = BatchPlan(LENGTHS, BATCH_SHAPES, seed=5)
    for step in range(len(steps)):
        assert found[step][0] == other.batch(step)[0]
        np.testing.assert_array_equal(found[step][1], other.batch(step)[1])


def test_epochs_and_seeds_differ():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=1)
    other = BatchPlan(LENGTHS, BATCH_SHAPES, seed=2)
    assert (epoch_rows(plan, 0) != epoch_rows(plan, 1)).any()
    assert (epoch_rows(plan, 0) != epoch_rows(other, 0)).any()


def test_batch_shapes_come_mixed():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=1)
    batch_shapes = [
        plan.batch(step)[0] for step in range(plan.batches_per_epoch)
    ]
    assert batch_shapes != sorted(batch_shapes) and batch_shapes != sorted(
        batch_shapes, reverse=True
    )


def test_shapes_are_told_in_the_order_of_their_first_steps():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=1)
    start = plan.batches_per_epoch - 1
    steps = plan.first_steps(start, start + plan.batches_per_epoch)
    assert list(steps.values()) == sorted(steps.values())
    assert steps.keys() == set(BATCH_SHAPES)
    for shape, first in steps.items():
        before = [plan.batch(step)[0] for step in range(start, first)]
        assert plan.batch(first)[0] == shape not in before
    assert list(plan.first_steps(start, start + 1).values()) == [start]


def test_the_order_is_the_same_on_every_machine():
    assert shuffled_order(7, 1, 0).tolist() == [0, 5, 4, 2, 6, 3, 1]
    assert shuffled_order(7, 1, 1).tolist() == [2, 1, 0, 6, 5, 3, 4]


def test_every_order_of_three_is_about_as_likely():
    orders = [tuple(shuffled_order(3, 11, n).tolist()) for n in range(1200)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6 and counts.min() > 140 and counts.max() < 260


def test_batches_of_a_batch_shape_are_of_even_size():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=3)
    sizes = {batch_shape: [] for batch_shape in BATCH_SHAPES}
    for step in range(plan.batches_per_epoch):
        batch_shape, rows = plan.batch(step)
        sizes[batch_shape].append(len(rows))
    for c, batch_shape in enumerate(BATCH_SHAPES):
        assert max(sizes[batch_shape]) - min(sizes[batch_shape]) <= 1
        assert len(sizes[batch_shape]) == plan.batches_per_shape[c]
        assert sum(sizes[batch_shape]) == plan.rows_per_shape[c]
        assert len(sizes[batch_shape]) == batch_shape.num_batches(
            sum(sizes[batch_shape])
        )


def test_without_shuffling_rows_stay_in_order_within_a_batch_shape():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, shuffle=False)
    seen = {batch_shape: [] for batch_shape in BATCH_SHAPES}
    for step in range(plan.batches_per_epoch):
        batch_shape, rows = plan.batch(step)
        seen[batch_shape] += rows.tolist()
    assert list(seen) == list(BATCH_SHAPES)
    assert all(rows == sorted(rows) for rows in seen.values())


def test_a_batch_shape_without_pairs_is_never_used():
    batch_shapes = (BatchShape(2, 3, 3), *BATCH_SHAPES)
    plan = BatchPlan(np.array([[13, 17], [4, 4]]), batch_shapes)
    assert plan.batches_per_shape == (0, 1, 0, 1)
    assert sorted(epoch_rows(plan, 5).tolist()) == [0, 1]


def test_whole_weights_repeat_rows_exactly():
    weights = np.arange(211) % 3
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=3, weights=weights)
    counts = np.bincount(epoch_rows(plan, 2), minlength=211)
    np.testing.assert_array_equal(counts, weights)


def test_broken_weights_hold_on_average():
    weights = np.where(np.arange(211) < 100, 0.3, 1.6)
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=3, weights=weights)
    epochs = 300
    counts = np.zeros(211)
    for epoch in range(epochs):
        rows = np.bincount(epoch_rows(plan, epoch), minlength=211)
        assert rows.sum() == sum(plan.rows_per_shape)
        assert ((rows <= np.ceil(1.05 * weights)) & (rows >= 0)).all()
        counts += rows
    np.testing.assert_allclose(counts / epochs, weights, atol=0.15)
    assert abs(counts[:100].sum() / epochs - 30) < 2


def test_repeats_are_floor_or_ceiling_with_the_asked_sum():
    weights = np.random.default_rng(0).uniform(0, 3, 97)
    weights *= 150 / weights.sum()
    for seed in range(20):
        repeats = weighted_repeats(weights, 150, seed)
        assert repeats.sum() == 150
        assert (abs(repeats - weights) < 1).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_expected_padding_is_what_the_batches_have(weighted):
    weights = np.arange(211) % 4 if weighted else None
    batch_shapes = choose_batch_shapes(LENGTHS, 101, 4)
    plan = BatchPlan(LENGTHS, batch_shapes, seed=3, weights=weights)
    real, padded = np.zeros(2), np.zeros(2)
    for step in range(plan.batches_per_epoch):
        batch_shape, rows = plan.batch(step)
        real += LENGTHS[rows].sum(axis=0)
        padded += batch_shape.batch_size * np.array(
            [batch_shape.source_length, batch_shape.target_length]
        )
    assert plan.padding_fraction == pytest.approx(1 - real.sum() / padded.sum())
    assert plan.target_padding_fraction == pytest.approx(
        1 - real[1] / padded[1]
    )
    assert plan.target_tokens_per_batch == pytest.approx(
        real[1] / plan.batches_per_epoch
    )


def test_description_tells_batch_shapes_padding_and_compilations():
    plan = BatchPlan(LENGTHS, BATCH_SHAPES, seed=3)
    text = plan.describe()
    assert len(text.splitlines()) == 1 + len(BATCH_SHAPES) + 4
    assert f"expected padding {100 * plan.padding_fraction:.1f}%" in text
    assert "3 compilations" in text
    assert "211 pairs" in text


def test_refuses_what_cannot_be_planned():
    with pytest.raises(ValueError, match="row 1 with lengths"):
        BatchPlan(np.array([[2, 2], [14, 2]]), BATCH_SHAPES)
    with pytest.raises(ValueError, match="at least one pair"):
        BatchPlan(np.zeros((0, 2), int), BATCH_SHAPES)
    with pytest.raises(ValueError, match="`seed`"):
        BatchPlan(LENGTHS, BATCH_SHAPES, seed=-1)
    with pytest.raises(ValueError, match="one non-negative number a row"):
        BatchPlan(LENGTHS, BATCH_SHAPES, weights=np.ones(210))
    with pytest.raises(ValueError, match="all be zero"):
        BatchPlan(LENGTHS, BATCH_SHAPES, weights=np.zeros(211))
    with pytest.raises(IndexError, match="`step`"):
        BatchPlan(LENGTHS, BATCH_SHAPES).batch(-1)
