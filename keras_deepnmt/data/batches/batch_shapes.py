"""Chooses the few shapes that all batches of a corpus are padded to.

Every shape costs one compilation, every padding token costs time:
`choose_cells` finds the set of shapes that wastes the fewest tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_deepnmt.data.batches.batch_shape_search import (
    LengthGrid,
    search_cells,
)

_ROWS_AT_A_TIME = 1_000_000


@dataclass(frozen=True, order=True)
class Cell:
    """The shape of one kind of batch.

    Args:
        batch_size: Rows, padding rows included.
        source_length: Tokens of a source row, end of sentence included.
        target_length: Tokens of a target row, begin of sentence included.

    Example:
    >>> Cell(batch_size=64, source_length=16, target_length=18).num_tokens
    2176
    """

    batch_size: int
    source_length: int
    target_length: int

    @property
    def row_tokens(self) -> int:
        """Tokens of one row, both sides."""
        return self.source_length + self.target_length

    @property
    def num_tokens(self) -> int:
        """Tokens of one batch, both sides, padding included."""
        return self.batch_size * self.row_tokens

    def num_batches(self, num_rows: int) -> int:
        """Batches needed for so many rows."""
        return -(-num_rows // self.batch_size)


def rows_for(
    source_length: int,
    target_length: int,
    batch_tokens: int,
    batch_multiple: int = 1,
) -> int:
    """Gives the rows of a batch that keeps either side in its budget.

    Args:
        source_length: Tokens of a source row.
        target_length: Tokens of a target row.
        batch_tokens: Most tokens on either side of a batch.
        batch_multiple: The result is a positive multiple of this.

    Returns:
        The number of rows; `batch_multiple` where even that breaks the budget.

    Example:
    >>> rows_for(10, 12, batch_tokens=100, batch_multiple=2)
    8
    """
    rows = batch_tokens // max(source_length, target_length)
    return max(batch_multiple, rows // batch_multiple * batch_multiple)


def choose_cells(
    lengths: np.ndarray,
    batch_tokens: int,
    max_shapes: int,
    batch_multiple: int = 1,
) -> tuple[Cell, ...]:
    """Chooses at most `max_shapes` cells that minimise the padded tokens.

    Every pair goes to the cheapest cell that contains it. The cost is the
    number of tokens of all batches of one epoch, padding rows included, so a
    nearly empty cell costs what it wastes. The result is deterministic and
    never worse than the best partition by source length, by target length or by
    the longer of the two (exactly so for up to 256 different lengths).

    Args:
        lengths: `(n, 2)` integers, source and target length of each pair with
            its special id.
        batch_tokens: Most tokens on either side of a batch.
        max_shapes: Most cells, that is, compilations.
        batch_multiple: Rows of a batch are a multiple of this; the number of
            replicas.

    Returns:
        The cells, cheapest row first. Each holds at least one pair.

    Raises:
        ValueError: if there are no pairs or an argument is not positive.

    Example:
    >>> lengths = np.array([[5, 6], [5, 5], [20, 22], [21, 20]])
    >>> [c.source_length for c in choose_cells(lengths, 44, max_shapes=2)]
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
    grid = LengthGrid(lengths, batch_tokens, batch_multiple)
    return tuple(
        Cell(rows_for(s, t, batch_tokens, batch_multiple), s, t)
        for s, t in search_cells(grid, max_shapes)
    )


def assign_cells(lengths: np.ndarray, cells: Sequence[Cell]) -> np.ndarray:
    """Finds the cheapest cell for each pair.

    Args:
        lengths: `(n, 2)` integers.
        cells: At most 255 cells.

    Returns:
        `(n,)` uint8 indices into `cells`; `len(cells)` where none is large
        enough.

    Raises:
        ValueError: if there are no cells or too many.

    Example:
    >>> cells = (Cell(8, 5, 5), Cell(4, 9, 9))
    >>> assign_cells(np.array([[3, 6], [4, 5], [9, 10]]), cells)
    array([1, 0, 2], dtype=uint8)
    """
    if not 1 <= len(cells) <= 255:
        raise ValueError(
            f"`cells` must have 1 to 255 entries. Received: {len(cells)}"
        )
    assigned = np.full(len(lengths), len(cells), "uint8")
    dearest_first = sorted(
        range(len(cells)),
        key=lambda c: (cells[c].row_tokens, cells[c].source_length, c),
        reverse=True,
    )
    for start in range(0, len(lengths), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        source, target = np.asarray(lengths[part]).T
        for c in dearest_first:
            fits = source <= cells[c].source_length
            fits &= target <= cells[c].target_length
            assigned[part][fits] = c
    return assigned
