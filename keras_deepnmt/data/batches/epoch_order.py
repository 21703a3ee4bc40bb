"""Seeded orders that are the same on every machine and NumPy version.

NumPy promises the raw bits of its generators for all its versions, but not what
`permutation` or `random` make of them; so only raw bits are used here.
"""

import numpy as np


def raw_bits(size: int, seed: int, *stream: int) -> np.ndarray:
    """Draws uint64 bits that depend on the seed and the stream alone.

    Args:
        size: How many.
        seed: Non-negative integer.
        stream: Non-negative integers that name what the bits are for.

    Returns:
        `(size,)` uint64.

    Example:
    >>> raw_bits(3, 1, 5).tolist() == raw_bits(3, 1, 5).tolist()
    True
    """
    sequence = np.random.SeedSequence(seed, spawn_key=stream)
    return np.random.Philox(sequence).random_raw(size)


def shuffled_order(size: int, seed: int, *stream: int) -> np.ndarray:
    """Shuffles the numbers below `size`.

    Args:
        size: How many.
        seed: Non-negative integer.
        stream: Non-negative integers that name what the order is for.

    Returns:
        `(size,)` int64, each number once.

    Example:
    >>> sorted(shuffled_order(3, 1, 5).tolist())
    [0, 1, 2]
    """
    return np.argsort(raw_bits(size, seed, *stream), kind="stable")


def weighted_repeats(
    weights: np.ndarray, total: int, seed: int, *stream: int
) -> np.ndarray:
    """Rounds weights at random to whole numbers of a given sum.

    Systematic sampling: after one random offset, every whole number that falls
    into a row's stretch of the cumulated weights counts for it. So each row
    gets the floor or the ceiling of its weight, and its weight on average.

    Args:
        weights: Non-negative numbers. They are scaled to sum to `total`.
        total: Sum of the result.
        seed: Non-negative integer.
        stream: Non-negative integers that name what the offset is for.

    Returns:
        int64 counts, one for each weight.

    Example:
    >>> weighted_repeats(np.array([2.0, 0.0, 1.0]), 3, 7).tolist()
    [2, 0, 1]
    """
    ends = np.cumsum(weights, dtype="float64")
    if len(ends) == 0 or ends[-1] == 0:
        return np.zeros(len(ends), "int64")
    offset = int(raw_bits(1, seed, *stream)[0] >> 11) / 2**53  # in [0, 1)
    marks = np.floor(ends * (total / ends[-1]) + offset).astype("int64")
    marks[-1] = total
    return np.diff(marks, prepend=0)
