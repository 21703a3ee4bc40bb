"""Chooses the few shapes in which the batches of a call are searched."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Shape(NamedTuple):
    """The shape of an array of source ids."""

    rows: int
    length: int


def choose_shapes(
    batches: Sequence[tuple[int, Shape]],
    most_rows: Callable[[int], int],
    compilation_padding: int,
) -> Mapping[int, Shape]:
    """Chooses shapes for the batches of a call, since each shape is compiled.

    Batches of one length all have the rows of the largest of them. Batches of
    few sentences are padded to the length of longer ones, where the padding is
    less than `compilation_padding`. The choice depends on nothing that was
    searched before, so that a continued run computes what it would have
    computed, and compiles nothing.

    Args:
        batches: for each batch its number of sentences and its own shape, of a
            padded length.
        most_rows: returns the largest number of rows that batches of a length
            may have.
        compilation_padding: as in `BatchLimits`.

    Returns:
        The shape for batches of each length.

    Example:
    >>> batches = [(32, Shape(32, 16)), (20, Shape(32, 32))]
    >>> choose_shapes(batches, lambda length: 32, 2_048)
    {16: Shape(rows=32, length=32), 32: Shape(rows=32, length=32)}
    """
    num_sentences, rows = {}, {}
    for number, shape in batches:
        length = shape.length
        num_sentences[length] = num_sentences.get(length, 0) + number
        rows[length] = max(rows.get(length, 0), shape.rows)
    lengths = sorted(rows)
    # By number of lengths, from the shortest on: the least cost in positions,
    # and how many of them the last shape is for.
    best = [(0, 0)]
    for end, longest in enumerate(lengths, 1):
        choices, padding = [], 0
        for start in reversed(range(end)):
            length = lengths[start]
            padding += num_sentences[length] * (longest - length)
            if start < end - 1 and rows[length] > most_rows(longest):
                break
            cost = best[start][0] + padding + compilation_padding
            choices.append((cost, end - start))
        best.append(min(choices))
    chosen = {}
    end = len(lengths)
    while end:
        joined = lengths[end - best[end][1] : end]
        shape = Shape(max(rows[length] for length in joined), joined[-1])
        chosen.update(dict.fromkeys(joined, shape))
        end -= len(joined)
    return chosen
