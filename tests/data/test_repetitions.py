"""Of equal pairs that of the heaviest corpus stays, and of those the first.

Partitions of hashes are searched one by one, by any worker, and in any number.
"""

import tracemalloc

import numpy as np
import pytest
from test_block_maps import map_elsewhere

from keras_deepnmt.data.preparation import repetitions as module
from keras_deepnmt.data.preparation.repetitions import Repetitions


def repeated(folder, corpora):
    """Corpora are lists of hashes, each after a weight."""
    with Repetitions(folder, map_elsewhere) as repetitions:
        for weight, hashes in corpora:
            for start in range(0, len(hashes), 1000):
                block = np.array(hashes[start : start + 1000], "uint64")
                repetitions.add(block, weight)
        repetitions.find()
        number = sum(len(hashes) for _, hashes in corpora)
        return repetitions.are_repeated(0, number).tolist()


def expected(corpora):
    rows = [(weight, one) for weight, hashes in corpora for one in hashes]
    best = {}
    for row, (weight, one) in enumerate(rows):
        if one not in best or weight > rows[best[one]][0]:
            best[one] = row
    return [best[one] != row for row, (_, one) in enumerate(rows)]


@pytest.mark.parametrize("rows_at_once", [700, 2**20])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.5, 3.0, 2.0)])
def test_the_first_in_the_heaviest_corpus_stays(
    tmp_path, monkeypatch, weights, rows_at_once
):
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows_at_once)
    draw = np.random.default_rng(5)
    # Also the first and the last hash of all, and each in several corpora.
    values = draw.integers(0, 2**64, 3000, "uint64", endpoint=False)
    values[:2] = 0, 2**64 - 1
    corpora = [
        (weight, draw.choice(values, size).tolist())
        for weight, size in zip(weights, (2500, 1, 1800), strict=True)
    ]
    assert repeated(tmp_path, corpora) == expected(corpora)


def test_the_number_of_partitions_changes_nothing(tmp_path, monkeypatch):
    draw = np.random.default_rng(6)
    corpora = [(1.0, draw.integers(0, 900, 2000).tolist())]
    # Prefixes are equal, as those of no other hashes.
    corpora += [(2.0, (draw.integers(0, 900, 500) << 50).tolist())]
    found = []
    for rows in (10**9, 40, 1):
        monkeypatch.setattr(module, "_PARTITION_ROWS", rows)
        found.append(repeated(tmp_path, corpora))
    assert found[0] == found[1] == found[2] == expected(corpora)


@pytest.mark.parametrize("corpora", [[], [(1.0, [])], [(1.0, [3])]])
def test_a_corpus_may_have_no_pairs(tmp_path, corpora):
    assert not any(repeated(tmp_path, corpora))


def test_no_part_of_the_hashes_depends_on_all(tmp_path):
    """Workers get a sixteenth at most, and memory holds a byte for each."""
    draw, count = np.random.default_rng(3), 2**20
    sizes = []

    def noted(make, made_of, calls):
        for hashes, rows in calls:
            sizes.append(len(hashes))
            yield make(*made_of)(hashes, rows)

    with Repetitions(tmp_path, noted) as repetitions:
        for _ in range(0, count, 2**16):
            repetitions.add(draw.integers(0, 2**64, 2**16, "uint64"), 1.0)
        assert not list(tmp_path.iterdir())
        tracemalloc.start()
        try:
            repetitions.find()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert sum(sizes) == count and max(sizes) < 1.1 * count / 16
    assert peak < count + 100 * max(sizes)
