"""Length-sorted batches of few shapes, since each shape is compiled once."""

from collections.abc import Sequence

import numpy as np

from keras_deepnmt.masks import PADDING_ID


def padded_length(length: int, largest: int | None = None) -> int:
    """Rounds a length in tokens up to one of a few lengths, at most `largest`.

    These are 8, 16, 24, 32, 48, 64, 96, 128 and so on: multiples of 8 that grow
    by a third or a half.

    Example:
    >>> [padded_length(length) for length in (1, 8, 9, 25, 33, 70)]
    [8, 8, 16, 32, 48, 96]
    """
    padded = 8
    while padded < length:
        is_power_of_two = padded & (padded - 1) == 0
        grown = padded * 3 // 2 if is_power_of_two else padded * 4 // 3
        padded = 16 if padded == 8 else grown
    return padded if largest is None else min(padded, largest)


def length_batches(lengths: Sequence[int], batch_size: int) -> list[np.ndarray]:
    """Groups the numbers of up to `batch_size` rows of similar length.

    The shortest rows come first; rows of equal length keep their order.

    Example:
    >>> [group.tolist() for group in length_batches([5, 2, 9, 2], 3)]
    [[1, 3, 0], [2]]
    """
    order = np.argsort(np.asarray(lengths, "int64"), kind="stable")
    return [
        order[start : start + batch_size]
        for start in range(0, len(order), batch_size)
    ]


def padded_batch(
    rows: Sequence[Sequence[int]], batch_size: int, length: int
) -> np.ndarray:
    """Puts rows of ids into an int32 array `(batch_size, length)`.

    Missing rows and missing ids are padding.

    Example:
    >>> padded_batch([[7, 3]], 2, 3).tolist()
    [[7, 3, 0], [0, 0, 0]]
    """
    batch = np.full((batch_size, length), PADDING_ID, "int32")
    for row, ids in enumerate(rows):
        batch[row, : len(ids)] = ids
    return batch
