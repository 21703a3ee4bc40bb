"""What must be true of choose_batch_shapes and assign_batch_shapes.

* Every pair has a batch shape that contains it, the cheapest of those.
* The token budget and the multiple hold; hardly any rows are padding.
* Few batch shapes: as good as brute force; never worse than any partition by
  one length, nor than the search before this one; more batch shapes never cost
  more; the same input gives the same batch shapes, also in later versions.
* Fast, also for many batch shapes, and little padding, on a corpus of real
  shape.
"""

import itertools
import time

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    BATCH_SHAPES_VERSION,
    BatchShape,
    assign_batch_shapes,
    choose_batch_shapes,
    rows_for,
    shapes_for_updates,
)


def corpus(pairs, seed=0, spread=0.4, longest=120):
    """Lengths of a skewed corpus: a log-normal and a noisy ratio."""
    random = np.random.default_rng(seed)
    source = np.exp(random.normal(2.6, spread, pairs)).round()
    target = (source * np.exp(random.normal(0.1, 0.12, pairs))).round()
    both = np.stack([source, target], axis=1).clip(1, longest - 1)
    return (both + 1).astype("uint16")


def padded_tokens(lengths, batch_shapes):
    assigned = assign_batch_shapes(lengths, batch_shapes)
    if (assigned == len(batch_shapes)).any():
        return np.inf
    rows = np.bincount(assigned, minlength=len(batch_shapes))
    return sum(
        batch_shape.num_batches(n) * batch_shape.num_tokens
        for batch_shape, n in zip(batch_shapes, rows.tolist(), strict=True)
    )


def batch_shapes_of(corners, lengths, batch_tokens):
    """Batch shapes of given lengths, their pairs divided evenly."""
    most = [BatchShape(rows_for(s, t, batch_tokens), s, t) for s, t in corners]
    assigned = assign_batch_shapes(lengths, most)
    if (assigned == len(most)).any():
        return most
    pairs = np.bincount(assigned, minlength=len(most)).tolist()
    return [
        BatchShape(
            -(-n // max(1, shape.num_batches(n))),
            shape.source_length,
            shape.target_length,
        )
        for shape, n in zip(most, pairs, strict=True)
        if n
    ]


def test_every_pair_fits_its_batch_shape_and_no_cheaper_one():
    lengths = corpus(2003)
    batch_shapes = choose_batch_shapes(lengths, 1021, 7)
    for (source, target), c in zip(
        lengths.tolist(),
        assign_batch_shapes(lengths, batch_shapes).tolist(),
        strict=True,
    ):
        fits = [
            batch_shape.row_tokens
            for batch_shape in batch_shapes
            if source <= batch_shape.source_length
            and target <= batch_shape.target_length
        ]
        assert batch_shapes[c].row_tokens == min(fits)
        assert source <= batch_shapes[c].source_length
        assert target <= batch_shapes[c].target_length


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("multiple", [1, 2, 3])
def test_budget_and_multiple_hold(multiple):
    batch_shapes = choose_batch_shapes(corpus(2003), 509, 6, multiple)
    assert 1 <= len(batch_shapes) <= 6
    for batch_shape in batch_shapes:
        assert batch_shape.batch_size % multiple == 0
        longer = max(batch_shape.source_length, batch_shape.target_length)
        assert (
            batch_shape.batch_size * longer <= 509
            or batch_shape.batch_size == multiple
        )


@pytest.mark.thorough
@pytest.mark.parametrize("multiple", [1, 2, 3])
def test_hardly_any_rows_are_padding(multiple):
    lengths = corpus(2003)
    batch_shapes = choose_batch_shapes(lengths, 509, 6, multiple)
    pairs = np.bincount(assign_batch_shapes(lengths, batch_shapes))
    for shape, n in zip(batch_shapes, pairs.tolist(), strict=True):
        most = rows_for(shape.source_length, shape.target_length, 509, multiple)
        batches = shape.num_batches(n)
        assert batches == -(-n // most)
        assert 0 <= batches * shape.batch_size - n < batches * multiple


def test_a_few_long_pairs_get_a_small_batch():
    lengths = np.array([*[[5, 6]] * 997, *[[90, 80]] * 3])
    batch_shapes = choose_batch_shapes(lengths, 4096, 2)
    assert batch_shapes == (BatchShape(499, 5, 6), BatchShape(3, 90, 80))


def test_rows_follow_the_weights():
    lengths = corpus(2003)
    weights = np.where(lengths[:, 0] > 20, 3.5, 0.2)
    weights[:100] = 0
    paddings = [
        BatchPlan(
            lengths, choose_batch_shapes(lengths, 1021, 6, 1, w), 1, weights
        ).padding_fraction
        for w in (None, weights)
    ]
    assert paddings[1] < paddings[0] - 0.01


def test_pairs_of_weight_zero_have_a_batch_shape_too():
    lengths = np.array([[3, 4]] * 10 + [[30, 40]])
    weights = np.array([1.0] * 10 + [0.0])
    batch_shapes = choose_batch_shapes(lengths, 100, 2, 1, weights)
    assert batch_shapes == (BatchShape(10, 3, 4), BatchShape(1, 30, 40))


def test_a_pair_longer_than_the_budget_gets_the_smallest_batch():
    lengths = np.array([[300, 200], *[[3, 5]] * 211])
    batch_shapes = choose_batch_shapes(lengths, 100, 2, 2)
    assert batch_shapes == (BatchShape(20, 3, 5), BatchShape(2, 300, 200))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_as_good_as_brute_force_on_tiny_corpora(seed):
    random = np.random.default_rng(seed)
    lengths = random.integers(2, 8, (41, 2))
    best = min(
        padded_tokens(lengths, batch_shapes_of(corners, lengths, 29))
        for corners in itertools.combinations(
            itertools.product(range(2, 8), range(2, 8)), 3
        )
    )
    assert padded_tokens(lengths, choose_batch_shapes(lengths, 29, 3)) == best


def test_no_shape_need_contain_all_pairs():
    lengths = np.array([[10, 3], [3, 10]] * 7)
    batch_shapes = choose_batch_shapes(lengths, 100, 2)
    assert batch_shapes == (BatchShape(7, 3, 10), BatchShape(7, 10, 3))


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [2, 3])
def test_never_worse_than_a_partition_by_one_length(seed, count):
    lengths = corpus(307, seed, longest=23)
    longest = lengths.max(axis=0).tolist()
    partitions = []
    for ends in itertools.combinations(range(2, 24), count):
        partitions += [
            [(end, end) for end in ends],
            [(end, longest[1]) for end in ends],
            [(longest[0], end) for end in ends],
        ]
    best = min(
        padded_tokens(lengths, batch_shapes_of(corners, lengths, 211))
        for corners in partitions
    )
    assert (
        padded_tokens(lengths, choose_batch_shapes(lengths, 211, count)) <= best
    )


@pytest.mark.parametrize(
    "spread, shapes, multiple, earlier",
    [
        (0.2, 1, 4, 312_480),
        (0.2, 3, 1, 190_485),
        pytest.param(0.2, 8, 4, 173_000, marks=pytest.mark.thorough),
        (0.6, 1, 4, 1_066_704),
        (0.6, 3, 1, 303_233),
        pytest.param(0.6, 8, 4, 223_020, marks=pytest.mark.thorough),
    ],
)
def test_never_worse_than_the_search_before_this_one(
    spread, shapes, multiple, earlier
):
    """It began with a greedy choice and improved one corner at a time."""
    lengths = corpus(5003, spread=spread)
    chosen = choose_batch_shapes(lengths, 2003, shapes, multiple)
    assert padded_tokens(lengths, chosen) <= earlier


def test_resumed_runs_keep_their_batch_shapes():
    """If this changes, `BATCH_SHAPES_VERSION` must be increased."""
    assert BATCH_SHAPES_VERSION == 2
    assert choose_batch_shapes(corpus(2003), 1021, 4, 2) == (
        BatchShape(70, 13, 14),
        BatchShape(44, 19, 22),
        BatchShape(28, 28, 33),
        BatchShape(16, 47, 56),
    )


@pytest.mark.thorough
def test_more_shapes_never_cost_more_and_padding_gets_small():
    lengths = corpus(50_021, longest=60)
    costs = [
        padded_tokens(lengths, choose_batch_shapes(lengths, 4096, shapes))
        for shapes in (1, 2, 4, 8, 12)
    ]
    assert costs == sorted(costs, reverse=True)
    assert 1 - lengths.sum(dtype="int64") / costs[3] < 0.17


@pytest.mark.thorough(each_commit=True)
def test_sixty_four_shapes_are_found_in_seconds():
    lengths = corpus(40_009, longest=60)
    start = time.process_time()
    batch_shapes = choose_batch_shapes(lengths, 4096, 64)
    assert time.process_time() - start < 8  # about 1 s on an idle machine
    assert 1 - lengths.sum() / padded_tokens(lengths, batch_shapes) < 0.04


@pytest.mark.parametrize(
    "shapes", [pytest.param(8, marks=pytest.mark.thorough), 12]
)
def test_long_sentences_take_little_time(shapes):
    lengths = corpus(100_003, spread=0.8, longest=400)
    start = time.process_time()
    choose_batch_shapes(lengths, 25_000, shapes)
    assert time.process_time() - start < 8  # about 1.5 s on an idle machine


def test_the_same_lengths_give_the_same_batch_shapes_in_any_order():
    lengths = corpus(2003)
    shuffled = np.random.default_rng(5).permutation(lengths)
    assert choose_batch_shapes(lengths, 997, 5) == choose_batch_shapes(
        shuffled, 997, 5
    )


def test_lengths_of_very_many_kinds_are_binned():
    random = np.random.default_rng(3)
    lengths = random.integers(1, 3000, (20_011, 2))
    batch_shapes = choose_batch_shapes(lengths, 65_536, 6)
    assert padded_tokens(lengths, batch_shapes) < padded_tokens(
        lengths, choose_batch_shapes(lengths, 65_536, 1)
    )


@pytest.mark.thorough
def test_one_million_pairs_take_little_time():
    lengths = corpus(1_000_003)
    start = time.process_time()
    choose_batch_shapes(lengths, 4096, 10)
    assert time.process_time() - start < 8  # about 1 s on an idle machine


def test_pairs_without_a_batch_shape_are_marked():
    batch_shapes = (BatchShape(7, 5, 3), BatchShape(2, 3, 11))
    lengths = np.array([[3, 3], [5, 4], [2, 11], [3, 12]])
    assert assign_batch_shapes(lengths, batch_shapes).tolist() == [0, 2, 1, 2]


def test_refuses_nothing_to_choose_from():
    with pytest.raises(ValueError, match="at least one pair"):
        choose_batch_shapes(np.zeros((0, 2), int), 100, 2)
    with pytest.raises(ValueError, match="max_shapes=0"):
        choose_batch_shapes(np.array([[2, 2]]), 100, 0)
    with pytest.raises(ValueError, match="1 to 255"):
        assign_batch_shapes(np.array([[2, 2]]), [])


def test_the_number_of_shapes_follows_the_number_of_updates():
    numbers = [shapes_for_updates(updates) for updates in range(1, 40_000)]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, 17))
    assert [shapes_for_updates(n) for n in (1, 60, 399, 400)] == [1, 1, 1, 2]
    assert [shapes_for_updates(n) for n in (6_399, 6_400)] == [7, 8]
