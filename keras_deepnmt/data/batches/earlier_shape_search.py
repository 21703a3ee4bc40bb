"""The batch shapes of runs that were started before version 2 of the search.

Such a run records no batch shapes. It keeps the order of its batches only if
the same shapes are chosen when it is resumed, so nothing here may change.

A set of batch shapes is a set of corners in a table of cumulative counts, so
the cost of thousands of sets takes a few NumPy look-ups. The search starts from
a greedy selection and from the exact best one-dimensional partitions. It
improves each start by replacing one corner at a time by the best candidate,
until the cost no longer falls.
"""

import numpy as np

from keras_deepnmt.data.batches.batch_shape_search import (
    bin_lengths,
    evenly_spaced,
)
from keras_deepnmt.data.batches.batch_shapes import BatchShape, rows_for

# If a side has more than 256 different lengths, they are binned.
_MAX_LENGTHS = 256
# Number of candidate lengths per side in the coarse search, and how many
# lengths around a corner are tried to refine it.
_COARSE = 40
_RADIUS = 6


class LengthGrid:
    """Cumulative counts of pairs, and the costs of sets of corners.

    A corner is a pair of 1-based indices into `sources` and `targets`, the
    lengths that occur (or the upper edges of their bins). `lengths` are `(n,
    2)` integers.

    Example:
    >>> grid = LengthGrid(np.array([[2, 3], [4, 3]]), 100, 1)
    >>> grid.sources.tolist(), int(grid.counts[1, 1])
    ([2, 4], 1)
    """

    def __init__(
        self, lengths: np.ndarray, batch_tokens: int, batch_multiple: int
    ):
        lengths = np.asarray(lengths)
        self.sources, source_bins = bin_lengths(
            np.bincount(lengths[:, 0]), _MAX_LENGTHS
        )
        self.targets, target_bins = bin_lengths(
            np.bincount(lengths[:, 1]), _MAX_LENGTHS
        )
        shape = len(self.sources), len(self.targets)
        flat = source_bins[lengths[:, 0]].astype("int64") * shape[1]
        flat += target_bins[lengths[:, 1]]
        histogram = np.bincount(flat, minlength=shape[0] * shape[1])
        counts = histogram.reshape(shape).cumsum(0).cumsum(1)
        self.counts = np.pad(counts, ((1, 0), (1, 0)))
        source, target = np.meshgrid(self.sources, self.targets, indexing="ij")
        self.row_tokens = np.pad(source + target, ((1, 0), (1, 0)))
        rows = batch_tokens // np.maximum(source, target)
        rows = np.maximum(
            batch_multiple, rows // batch_multiple * batch_multiple
        )
        self.rows = np.pad(rows, ((1, 0), (1, 0)), constant_values=1)

    @property
    def total(self) -> int:
        """Number of pairs."""
        return self.counts[-1, -1]

    def costs(self, corners: np.ndarray) -> np.ndarray:
        """Returns the number of padded tokens of each set of corners.

        `corners` has shape `(sets, batch_shapes, 2)`; `(0, 0)` stands for no
        batch shape. The result is `(sets,)` floats, infinite if a pair fits no
        shape of the set.
        """
        order = self._cheapest_first(corners)
        corners = np.take_along_axis(corners, order[..., None], axis=1)
        source, target = corners[..., 0], corners[..., 1]
        rows = self.rows[source, target]
        pairs = np.diff(self._unions(source, target), axis=1, prepend=0)
        batches = -(-pairs // rows)
        cost = (batches * rows * self.row_tokens[source, target]).sum(axis=1)
        return np.where(pairs.sum(axis=1) < self.total, np.inf, cost)

    def pairs_of(self, corners: np.ndarray) -> np.ndarray:
        """Counts for each corner the pairs for which it is the cheapest.

        `corners` has shape `(batch_shapes, 2)`, the result `(batch_shapes,)`.
        """
        order = self._cheapest_first(corners[None])[0]
        source, target = corners[order][None, :, 0], corners[order][None, :, 1]
        pairs = np.zeros(len(corners), "int64")
        pairs[order] = np.diff(self._unions(source, target)[0], prepend=0)
        return pairs

    def _cheapest_first(self, corners: np.ndarray) -> np.ndarray:
        source, target = corners[..., 0], corners[..., 1]
        return np.lexsort((source, self.row_tokens[source, target]))

    def _unions(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        # Pairs that fit the first shape, the first two, ...: a shape gets the
        # pairs that it adds to the cheaper shapes before it.
        return np.stack(
            [
                self._union(source[:, : c + 1], target[:, : c + 1])
                for c in range(source.shape[1])
            ],
            axis=1,
        )

    def _union(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        # Rectangles that share the corner (0, 0) form a staircase, whose
        # pairs are counted step by step.
        order = np.argsort(source, axis=1)
        source = np.take_along_axis(source, order, axis=1)
        target = np.take_along_axis(target, order, axis=1)
        height = np.maximum.accumulate(target[:, ::-1], axis=1)[:, ::-1]
        left = np.pad(source[:, :-1], ((0, 0), (1, 0)))
        steps = self.counts[source, height] - self.counts[left, height]
        return steps.sum(axis=1)


def choose_earlier_batch_shapes(
    lengths: np.ndarray,
    batch_tokens: int,
    max_shapes: int,
    batch_multiple: int = 1,
) -> tuple[BatchShape, ...]:
    """Chooses the batch shapes that version 1 of the search chose.

    The arguments and the result are those of `choose_batch_shapes`.

    Example:
    >>> lengths = np.array([[5, 6], [5, 5], [20, 22], [21, 20]])
    >>> choose_earlier_batch_shapes(lengths, 44, max_shapes=2)[0]
    BatchShape(batch_size=7, source_length=5, target_length=6)
    """
    grid = LengthGrid(lengths, batch_tokens, batch_multiple)
    return tuple(
        BatchShape(rows_for(s, t, batch_tokens, batch_multiple), s, t)
        for s, t in _search(grid, max_shapes)
    )


def _search(grid: LengthGrid, max_shapes: int) -> list[tuple[int, int]]:
    coarse = _corners(
        evenly_spaced(len(grid.sources), _COARSE),
        evenly_spaced(len(grid.targets), _COARSE),
    )

    def cost(corners):
        return grid.costs(corners[None])[0]

    starts = [
        _greedy(grid, max_shapes, coarse),
        *(
            _best_partition(grid, max_shapes, side)
            for side in ("longer", "source", "target")
        ),
    ]
    results = []
    for corners in starts:
        corners = _improve(grid, corners, lambda corner: coarse)
        corners = _improve(
            grid, corners, lambda corner: _neighbors(grid, corner)
        )
        results.append(corners)
    corners = min(results, key=cost)
    used = corners[grid.pairs_of(corners) > 0]
    lengths = [
        (int(grid.sources[s - 1]), int(grid.targets[t - 1])) for s, t in used
    ]
    return sorted(lengths, key=lambda pair: (sum(pair), pair))


def _corners(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    grid = np.meshgrid(sources, targets, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 2)


def _neighbors(grid: LengthGrid, corner: np.ndarray) -> np.ndarray:
    window = np.arange(-_RADIUS, _RADIUS + 1)
    sizes = len(grid.sources), len(grid.targets)
    sides = [
        np.unique((index + window).clip(1, size))
        for index, size in zip(corner, sizes, strict=True)
    ]
    return _corners(*sides)


def _greedy(grid, max_shapes: int, candidates: np.ndarray) -> np.ndarray:
    corners = np.zeros((max_shapes, 2), int)
    corners[0] = len(grid.sources), len(grid.targets)
    for c in range(1, max_shapes):
        corners = _best_replacement(grid, corners, c, candidates)[0]
    return corners


def _best_replacement(grid, corners, c: int, candidates: np.ndarray):
    sets = np.repeat(corners[None], len(candidates) + 1, axis=0)
    sets[1:, c] = candidates  # the first set stays unchanged
    costs = grid.costs(sets)
    best = np.argmin(costs)
    return sets[best], costs[best] < costs[0]


def _improve(grid, corners: np.ndarray, candidates_of) -> np.ndarray:
    improved = True
    while improved:
        improved = False
        for c in range(len(corners)):
            corners, better = _best_replacement(
                grid, corners, c, candidates_of(corners[c])
            )
            improved |= better
    return corners


def _best_partition(grid: LengthGrid, max_shapes: int, side: str) -> np.ndarray:
    # The exact best partition of one length into at most `max_shapes`
    # intervals, by dynamic programming over nested corners.
    chain = _nested_corners(grid, side)
    counts = np.append(0, grid.counts[chain[:, 0], chain[:, 1]])
    rows = np.append(1, grid.rows[chain[:, 0], chain[:, 1]])
    tokens = np.append(0, grid.row_tokens[chain[:, 0], chain[:, 1]])
    inside = counts[None, :] - counts[:, None]  # pairs after start, up to end
    cost = np.where(inside >= 0, -(-inside // rows) * rows * tokens, np.inf)
    cost[np.tril_indices(len(cost), -1)] = np.inf
    best = np.where(np.arange(len(cost)) == 0, 0.0, np.inf)
    starts = []
    for _ in range(max_shapes):
        total = best[:, None] + cost
        starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    corners = np.zeros((max_shapes, 2), int)
    end = len(chain)
    for c, start in enumerate(reversed(starts)):
        if start[end] < end:
            corners[c] = chain[end - 1]
        end = start[end]
    return corners


def _nested_corners(grid: LengthGrid, side: str) -> np.ndarray:
    last_source, last_target = len(grid.sources), len(grid.targets)
    if side == "source":
        return _corners(np.arange(1, last_source + 1), np.array([last_target]))
    if side == "target":
        return _corners(np.array([last_source]), np.arange(1, last_target + 1))
    lengths = np.union1d(grid.sources, grid.targets)
    below = [
        np.searchsorted(edges, lengths, side="right")
        for edges in (grid.sources, grid.targets)
    ]
    return np.stack(below, axis=1)
