"""Length-sorted batches of few shapes, since each shape is compiled once."""

from collections.abc import Callable, Sequence

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


def padded_rows(rows: int, largest: int) -> int:
    """Rounds a number of rows up to one of a few, at most `largest`.

    These are 1, 4, 16, 64 and so on, and `largest`.

    Example:
    >>> [padded_rows(rows, 32) for rows in (1, 2, 5, 17, 32)]
    [1, 4, 16, 32, 32]
    """
    padded = 1
    while padded < rows:
        padded *= 4
    return min(padded, largest)


def most_rows(tokens_of_row: int, batch_size: int, batch_tokens: int) -> int:
    """Returns how many rows of some tokens each a batch may have, at least 1.

    Example:
    >>> [most_rows(tokens, 32, 8192) for tokens in (24, 1024, 9999)]
    [32, 8, 1]
    """
    return max(1, min(batch_size, batch_tokens // tokens_of_row))


def length_batches(
    lengths: Sequence[int],
    batch_size: int,
    batch_tokens: int,
    tokens_of_row: Callable[[int], int] = padded_length,
) -> list[np.ndarray]:
    """Groups the numbers of rows of similar length.

    The shortest rows come first; rows of equal length keep their order. A group
    has at most `batch_size` rows and at most `batch_tokens` tokens, unless it
    is a single row: all rows count as the longest, `tokens_of_row` of its
    length.

    Example:
    >>> groups = length_batches([5, 2, 9, 2, 70], 3, 99)
    >>> [group.tolist() for group in groups]
    [[1, 3, 0], [2], [4]]
    """
    order = np.argsort(np.asarray(lengths, "int64"), kind="stable")
    groups, start = [], 0
    for end in range(1, len(order) + 1):
        if end < len(order):
            tokens = tokens_of_row(int(lengths[order[end]]))
            if end - start < most_rows(tokens, batch_size, batch_tokens):
                continue
        groups.append(order[start:end])
        start = end
    return groups


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
