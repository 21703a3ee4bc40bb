"""Seeded orders that are the same on every machine and NumPy version.

NumPy guarantees the raw bits of its generators for all versions, but not the
results of `permutation` or `random`, so only raw bits are used here.
"""

import numpy as np


def draw_bits(size: int, seed: int, *stream: int) -> np.ndarray:
    """Draws `size` uint64 numbers that depend only on the seed and the stream.

    `stream` are non-negative integers that identify the purpose of the draw.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=stream)
    return np.random.Philox(sequence).random_raw(size)


def shuffled_order(size: int, seed: int, *stream: int) -> np.ndarray:
    """Returns the integers below `size` in a seeded random order, as int64.

    `stream` are non-negative integers that identify the purpose of the order.
    """
    return np.argsort(draw_bits(size, seed, *stream), kind="stable")


def weighted_repeats(
    weights: np.ndarray, total: int, seed: int, *stream: int
) -> np.ndarray:
    """Rounds weights at random to int64 counts with the sum `total`.

    Weights are first scaled to that sum. With systematic sampling, each count
    is the floor or the ceiling of its weight, and equals its weight on average:
    after one random offset, a row's count is the number of integers in its
    interval of the cumulative weights.
    """
    ends = np.cumsum(weights, dtype="float64")
    if len(ends) == 0 or ends[-1] == 0:
        return np.zeros(len(ends), "int64")
    offset = int(draw_bits(1, seed, *stream)[0] >> 11) / 2**53  # in [0, 1)
    marks = np.floor(ends * (total / ends[-1]) + offset).astype("int64")
    marks[-1] = total
    return np.diff(marks, prepend=0)
