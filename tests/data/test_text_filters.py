"""What must be true of filters.

Each pair is refused by the first rule it
breaks; the set of hashes is a set, and small.
"""

import tracemalloc

import numpy as np
import pytest

from keras_deepnmt.data.preparation.text_filters import (
    PairFilter,
    SeenHashes,
    hash_text,
)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a b", "c d", None),
        ("", "", "empty"),
        ("a", "", "empty"),
        ("a b", "a b", "identical"),
        ("a", "b c", "length"),
        ("a b c d e f", "a b c d e", "length"),
        ("a b c d e", "f g", "ratio"),
        ("a b c d", "f g", None),
    ],
)
def test_a_pair_is_refused_by_the_first_rule_it_breaks(source, target, reason):
    rules = PairFilter(min_length=2, max_length=5, max_ratio=2.0)
    assert rules.reason(source, target) == reason


def test_identical_sides_can_be_kept():
    assert PairFilter(drop_identical=False).reason("a", "a") is None


def test_hashes_tell_sides_apart_and_do_not_change():
    assert hash_text("a", "b c") != hash_text("a b", "c")
    # A fixed value: manifests of other days and machines must agree.
    assert hash_text("ein", "one") == 0xEC5FC5D3584AFBE4


def test_seen_hashes_are_a_set():
    random = np.random.default_rng(7)
    seen, reference = SeenHashes(), set()
    for size in random.integers(0, 300, 60):
        block = random.integers(0, 5_000, size).astype("uint64")
        expected = []
        for value in block.tolist():
            expected.append(value not in reference)
            reference.add(value)
        assert seen.add(block).tolist() == expected
    assert len(seen) == len(reference)
    everything = np.arange(5_000, dtype="uint64")
    expected = [value in reference for value in range(5_000)]
    assert seen.contains(everything).tolist() == expected


def test_seen_hashes_take_at_most_16_bytes_each_while_they_grow():
    random = np.random.default_rng(3)
    seen, count = SeenHashes(), 1_000_000
    tracemalloc.start()
    try:
        for _ in range(0, count, 4_096):
            seen.add(random.integers(0, 2**64, 4_096, "uint64"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 16 * len(seen) + 1_000_000
