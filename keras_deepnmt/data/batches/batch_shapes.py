"""Chooses the few shapes that all batches of a corpus are padded to.

Every shape costs one compilation and every padding token costs time:
`choose_batch_shapes` looks for the shapes with the fewest padding tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_deepnmt.data.batches.batch_shape_search import (
    search_batch_shapes,
)
from keras_deepnmt.xla import tuned

# Version of the search. Runs record it, since they do not record the shapes.
BATCH_SHAPES_VERSION = 2
MOST_SHAPES = 16
_ROWS_AT_A_TIME = 1_000_000


@dataclass(frozen=True, order=True)
class BatchShape:
    """The shape that the batches of similar sentence lengths are padded to.

    Args:
        batch_size: Number of rows, including padding rows.
        source_length: Tokens of a source row, including the end of sentence.
        target_length: Tokens of a target row, including the begin of sentence.

    Example:
    >>> BatchShape(batch_size=64, source_length=16, target_length=18).num_tokens
    2176
    """

    batch_size: int
    source_length: int
    target_length: int

    @property
    def row_tokens(self) -> int:
        """Number of tokens of one row, both sides."""
        return self.source_length + self.target_length

    @property
    def num_tokens(self) -> int:
        """Number of tokens of one batch, both sides, including padding."""
        return self.batch_size * self.row_tokens

    def num_batches(self, num_rows: int) -> int:
        """Number of batches needed for `num_rows` rows."""
        return -(-num_rows // self.batch_size)


def rows_for(
    source_length: int,
    target_length: int,
    batch_tokens: int,
    batch_multiple: int = 1,
) -> int:
    """Returns the number of rows that keeps either side within `batch_tokens`.

    It is a multiple of `batch_multiple` and at least `batch_multiple`, even if
    that exceeds the limit.
    """
    rows = batch_tokens // max(source_length, target_length)
    return max(batch_multiple, rows // batch_multiple * batch_multiple)


def shapes_for_updates(updates: int) -> int:
    """Returns how many batch shapes are worth compiling for some updates.

    It is `sqrt(updates / 100)`, rounded down, from 1 to 16. With k shapes the
    share of padding is about proportional to 1 / k, so the time of compiling
    them and of computing the padding is shortest for a k proportional to
    `sqrt(updates)`; a compilation takes as long as some 100 updates.
    """
    return min(
        MOST_SHAPES, max(1, math.isqrt(updates // tuned.COMPILATION_BATCHES))
    )


def choose_batch_shapes(
    lengths: np.ndarray,
    batch_tokens: int,
    max_shapes: int,
    batch_multiple: int = 1,
    weights: np.ndarray | None = None,
) -> tuple[BatchShape, ...]:
    """Chooses at most `max_shapes` shapes that minimize the padded tokens.

    Every pair goes to the cheapest shape that contains it. The cost is the
    number of tokens in all batches of one epoch, including padding rows. The
    number of rows is chosen with the lengths: the pairs of a shape are divided
    evenly among as few batches as possible, so that hardly any rows are
    padding. The result is deterministic and never worse than the best partition
    by source length, by target length or by the longer of the two (exactly so
    for up to 256 different lengths, and up to 64 with very many shapes).

    Args:
        lengths: `(n, 2)` integers, source and target length of each pair with
            its special id.
        batch_tokens: Maximum number of tokens on either side of a batch.
        max_shapes: Maximum number of shapes, hence of compilations.
        batch_multiple: The number of rows of a batch is a multiple of this;
            give the number of replicas.
        weights: `(n,)` expected appearances of each pair in an epoch, as in
            `BatchPlan`. Defaults to one each.

    Returns:
        The batch shapes, cheapest row first. Each has at least one pair.

    Raises:
        ValueError: if there are no pairs or an argument is not positive.

    Example:
    >>> lengths = np.array([[5, 6], [5, 5], [20, 22], [21, 20]])
    >>> shapes = choose_batch_shapes(lengths, 44, max_shapes=2)
    >>> [shape.source_length for shape in shapes]
    [5, 21]
    """
    if min(batch_tokens, max_shapes, batch_multiple) < 1:
        raise ValueError(
            "`batch_tokens`, `max_shapes` and `batch_multiple` must be "
            f"positive. Received: batch_tokens={batch_tokens}, "
            f"max_shapes={max_shapes}, batch_multiple={batch_multiple}"
        )
    if len(lengths) == 0:
        raise ValueError("`lengths` must hold at least one pair. Received: 0")
    found = search_batch_shapes(
        lengths, batch_tokens, max_shapes, batch_multiple, weights
    )
    return tuple(BatchShape(*sizes) for sizes in found)


def assign_batch_shapes(
    lengths: np.ndarray, batch_shapes: Sequence[BatchShape]
) -> np.ndarray:
    """Returns the index of the cheapest batch shape for each pair.

    `lengths` are `(n, 2)` integers; the result is `(n,)` uint8, with
    `len(batch_shapes)` for a pair that is too long for all shapes. There may be
    255 shapes at most.
    """
    if not 1 <= len(batch_shapes) <= 255:
        raise ValueError(
            "`batch_shapes` must have 1 to 255 entries. "
            f"Received: {len(batch_shapes)}"
        )
    assigned = np.full(len(lengths), len(batch_shapes), "uint8")
    costliest_first = sorted(
        enumerate(batch_shapes),
        key=lambda item: (item[1].row_tokens, item[1].source_length, item[0]),
        reverse=True,
    )
    for start in range(0, len(lengths), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        source, target = np.asarray(lengths[part]).T
        for index, shape in costliest_first:
            fits = source <= shape.source_length
            fits &= target <= shape.target_length
            assigned[part][fits] = index
    return assigned
