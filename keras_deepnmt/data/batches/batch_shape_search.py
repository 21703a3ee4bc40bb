"""The search behind `choose_batch_shapes`, on the two-dimensional histogram.

A set of batch shapes is a set of corners of one table of cumulated counts, so
the cost of thousands of sets is a handful of NumPy look-ups. Starts: greedy
selection and the exact best one-dimensional partition. Each start is improved
by replacing one corner at a time by the best of all until nothing is gained.
"""

import numpy as np

# 256 different lengths a side are kept apart; a corpus with more is binned.
_MAX_LENGTHS = 256
# Corners tried everywhere (per side), and around a corner to refine it.
_COARSE = 40
_RADIUS = 6


class LengthGrid:
    """Counts of pairs under every corner, and the cost of sets of corners.

    A corner is a pair of 1-based indices into `sources` and `targets`, the
    lengths that occur (or the upper edges of their bins).

    Args:
        lengths: `(n, 2)` integers.
        batch_tokens: Most tokens on either side of a batch.
        batch_multiple: Rows of a batch are a multiple of this.

    Example:
    >>> grid = LengthGrid(np.array([[2, 3], [4, 3]]), 100, 1)
    >>> grid.sources.tolist(), int(grid.counts[1, 1])
    ([2, 4], 1)
    """

    def __init__(
        self, lengths: np.ndarray, batch_tokens: int, batch_multiple: int
    ):
        lengths = np.asarray(lengths)
        self.sources, source_bins = _bins(lengths[:, 0])
        self.targets, target_bins = _bins(lengths[:, 1])
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
        """Gives the padded tokens of many sets of corners.

        Args:
            corners: `(sets, batch_shapes, 2)` 1-based indices; `(0, 0)` is no
                batch shape.

        Returns:
            `(sets,)` float tokens; infinity where some pair has no batch shape.
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
        """Counts the pairs whose cheapest batch shape each corner is.

        Args:
            corners: `(batch_shapes, 2)` 1-based indices.

        Returns:
            `(batch_shapes,)` counts.
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
        # Pairs in the first shape, in the first two, ...: what a shape adds to
        # the cheaper ones before it is what goes to it.
        return np.stack(
            [
                self._union(source[:, : c + 1], target[:, : c + 1])
                for c in range(source.shape[1])
            ],
            axis=1,
        )

    def _union(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        # A union of rectangles with one common corner is a staircase.
        order = np.argsort(source, axis=1)
        source = np.take_along_axis(source, order, axis=1)
        target = np.take_along_axis(target, order, axis=1)
        height = np.maximum.accumulate(target[:, ::-1], axis=1)[:, ::-1]
        left = np.pad(source[:, :-1], ((0, 0), (1, 0)))
        steps = self.counts[source, height] - self.counts[left, height]
        return steps.sum(axis=1)


def search_batch_shapes(
    grid: LengthGrid, max_shapes: int
) -> list[tuple[int, int]]:
    """Finds the corners of a cheap set of batch shapes.

    Args:
        grid: The counts.
        max_shapes: Most batch shapes.

    Returns:
        `(source_length, target_length)` of each batch shape that holds a pair,
        cheapest row first.
    """
    coarse = _corners(
        _spread(len(grid.sources), _COARSE), _spread(len(grid.targets), _COARSE)
    )

    def cost(corners):
        return grid.costs(corners[None])[0]

    starts = [
        _greedy(grid, max_shapes, coarse),
        *(
            _partition(grid, max_shapes, side)
            for side in ("longer", "source", "target")
        ),
    ]
    results = []
    for corners in starts:
        corners = _improve(grid, corners, lambda corner: coarse)
        corners = _improve(grid, corners, lambda corner: _around(grid, corner))
        results.append(corners)
    corners = min(results, key=cost)
    used = corners[grid.pairs_of(corners) > 0]
    lengths = [
        (int(grid.sources[s - 1]), int(grid.targets[t - 1])) for s, t in used
    ]
    return sorted(lengths, key=lambda pair: (sum(pair), pair))


def _bins(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Upper edges of the bins, and a table from a length to its bin.
    counts = np.bincount(lengths)
    edges = np.flatnonzero(counts)
    if len(edges) > _MAX_LENGTHS:
        # Half by rank of length, half by number of pairs: both a long thin
        # tail and a dense middle keep their resolution.
        shares = np.cumsum(counts[edges]) / len(lengths)
        wanted = np.linspace(0, 1, _MAX_LENGTHS // 2)
        by_pairs = np.searchsorted(shares, wanted).clip(max=len(edges) - 1)
        by_rank = _spread(len(edges), _MAX_LENGTHS // 2) - 1
        edges = edges[np.union1d(by_pairs, by_rank)]
    return edges, np.searchsorted(edges, np.arange(len(counts)))


def _spread(size: int, most: int) -> np.ndarray:
    # Evenly spread 1-based indices, the last one included.
    return np.unique(np.linspace(1, size, min(size, most)).round()).astype(int)


def _corners(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    grid = np.meshgrid(sources, targets, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 2)


def _around(grid: LengthGrid, corner: np.ndarray) -> np.ndarray:
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
    sets[1:, c] = candidates  # the first set keeps what is there
    costs = grid.costs(sets)
    best = np.argmin(costs)
    return sets[best], costs[best] < costs[0]


def _improve(grid, corners: np.ndarray, candidates_of) -> np.ndarray:
    gained = True
    while gained:
        gained = False
        for c in range(len(corners)):
            corners, better = _best_replacement(
                grid, corners, c, candidates_of(corners[c])
            )
            gained |= better
    return corners


def _partition(grid: LengthGrid, max_shapes: int, side: str) -> np.ndarray:
    # The exact best cut of one length into at most `max_shapes` intervals, by
    # dynamic programming over corners that lie inside one another.
    chain = _chain(grid, side)
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


def _chain(grid: LengthGrid, side: str) -> np.ndarray:
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
