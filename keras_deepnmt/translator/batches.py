"""Length-sorted batches of few shapes, since each shape is compiled once."""

from collections.abc import Sequence

import numpy as np

from keras_deepnmt.masks import PADDING_ID

# Positions of padding that are worth one more batch.
_MUCH_PADDING = 512


def padded_length(length: int, largest: int | None = None) -> int:
    """Rounds a length in tokens up to one of a few lengths, at most `largest`.

    These are 8, 16, 32, 64, and then 96, 128, 192, 256 and so on, which grow by
    a third or a half: padding of short sentences costs little.

    Example:
    >>> [padded_length(length) for length in (1, 8, 9, 25, 33, 70)]
    [8, 8, 16, 32, 64, 96]
    """
    padded = 8
    while padded < length:
        is_power_of_two = padded & (padded - 1) == 0
        if padded < 64:
            padded *= 2
        else:
            padded = padded * 3 // 2 if is_power_of_two else padded * 4 // 3
    return padded if largest is None else min(padded, largest)


def padded_rows(rows: int, largest: int) -> int:
    """Rounds a number of rows up to one of a few, at most `largest`.

    These are 1, 4, 16, 64 and so on, `largest`, and its half, rounded up.

    Example:
    >>> [padded_rows(rows, 100) for rows in (1, 2, 5, 17, 51, 65)]
    [1, 4, 16, 50, 64, 100]
    """
    padded = 1
    while padded < rows:
        padded *= 4
    half = -(-largest // 2)
    return min(n for n in (padded, half, largest) if n >= rows)


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
    tokens_of_rows: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Groups the numbers of rows of similar length.

    The shortest rows come first; rows of equal length and tokens keep their
    order. A group has at most `batch_size` rows and at most `batch_tokens`
    tokens, unless it is a single row: all rows count as the one with the most
    of `tokens_of_rows`, by default their padded lengths. A group also ends
    where that saves much padding.

    Example:
    >>> groups = length_batches([5, 2, 9, 2, 70], 3, 99)
    >>> [group.tolist() for group in groups]
    [[1, 3, 0], [2], [4]]
    """
    if tokens_of_rows is None:
        tokens_of_rows = [padded_length(int(length)) for length in lengths]
    order = np.lexsort((tokens_of_rows, lengths))
    groups, start, tokens = [], 0, 0
    for end in range(1, len(order) + 1):
        tokens = max(tokens, tokens_of_rows[order[end - 1]])
        if end < len(order):
            longest = int(lengths[order[end]])
            most = most_rows(
                max(tokens, tokens_of_rows[order[end]]),
                batch_size,
                batch_tokens,
            )
            added = padded_length(longest) - padded_length(
                int(lengths[order[end - 1]])
            )
            saves_much = (end - start) * added >= _MUCH_PADDING
            if end - start < most and not saves_much:
                continue
        groups.append(order[start:end])
        start, tokens = end, 0
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


def padded_phrases(
    rows: Sequence[Sequence[Sequence[int]]], batch_size: int
) -> np.ndarray:
    """Puts phrases of ids into an int32 array `(batch_size, C, P)`.

    C and P are powers of 2, so that there are few shapes.

    Example:
    >>> padded_phrases([[[7, 8, 9], [5]], []], 2).shape
    (2, 2, 4)
    """
    most = max(1, *map(len, rows))
    longest = max((len(ids) for phrases in rows for ids in phrases), default=1)
    shape = tuple(1 << (size - 1).bit_length() for size in (most, longest))
    batch = np.full((batch_size, *shape), PADDING_ID, "int32")
    for row, phrases in enumerate(rows):
        for place, ids in enumerate(phrases):
            batch[row, place, : len(ids)] = ids
    return batch
