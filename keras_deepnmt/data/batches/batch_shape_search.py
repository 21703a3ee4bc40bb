"""The search behind `choose_batch_shapes`, on the table of both lengths.

A batch shape is a corner in the table of pairs by source and target length: it
contains the pairs below both of its lengths, and every pair goes to the corner
of the fewest tokens that contains it. The search adds one corner after another
where it saves most, then moves each to the best place in the whole table, given
all others, until none can be improved. To leave a local optimum it removes
neighboring corners and places them anew. All choices are deterministic.
"""

from collections.abc import Sequence

import numpy as np

Corner = tuple[int, int]

# More different lengths of a side than these are binned: the upper limit, and
# the one for very many shapes, whose search would take too long.
_MOST_LENGTHS = 256
_FEWEST_LENGTHS = 64
# The work of the search is counted in table entries that it reads. One round
# over all corners may read at most the first number; after the second no
# further start is tried; after the third the search ends. They take about 0.3,
# 1 and 5 seconds on one core.
_ROUND_WORK = 2e7
_SEARCH_WORK = 1e8
_MOST_WORK = 4e8
# The fixed cost of examining one corner, in the same unit.
_FIXED_WORK = 2_000
# The number of single corners that the search starts from, if work is left.
_MOST_STARTS = 40
_ROWS_AT_A_TIME = 1_000_000


def even_rows(num_rows, most_rows, batch_multiple: int):
    """Returns the rows of a batch if `num_rows` are divided evenly.

    There are as many batches as with `most_rows` each, which is a multiple of
    `batch_multiple`; the result is such a multiple, too. Works on numbers and
    on arrays.

    Example:
    >>> int(even_rows(101, most_rows=50, batch_multiple=2))
    34
    """
    batches = np.maximum(1, np.ceil(num_rows / most_rows))
    return batch_multiple * np.ceil(num_rows / (batches * batch_multiple))


class LengthTable:
    """Pairs by source and target length, and the costs of sets of corners.

    A corner holds 0-based indices into `sources` and `targets`, the lengths
    that occur (or the upper edges of their bins). A side with more than
    `most_lengths` different lengths has bins.

    `lengths` are `(n, 2)` integers, source and target length of each pair, and
    `weights`, `(n,)`, the expected appearances of each pair in an epoch, by
    default one. A batch has at most `batch_tokens` tokens on either side. Its
    number of rows is a multiple of `batch_multiple`, even if that exceeds the
    limit.

    Example:
    >>> table = LengthTable(np.array([[2, 3], [4, 3]]), 100, 1)
    >>> table.sources.tolist(), table.cost([(1, 0)])
    ([2, 4], 14.0)
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_tokens: int,
        batch_multiple: int,
        weights: np.ndarray | None = None,
        most_lengths: int = _MOST_LENGTHS,
    ):
        self.multiple = batch_multiple
        self.sources, self.targets, self.pairs, self.rows = _count_lengths(
            lengths, weights, most_lengths
        )
        source, target = self.sources[:, None], self.targets[None, :]
        self.row_tokens = source + target
        most_rows = batch_tokens // np.maximum(source, target)
        self.most_rows = np.maximum(
            batch_multiple, most_rows // batch_multiple * batch_multiple
        )
        self.work = 0
        # A corner is worth trying if pairs touch both of its sides.
        occurs = self.pairs > 0
        source, target = np.nonzero(
            np.maximum.accumulate(occurs, axis=0)
            & np.maximum.accumulate(occurs, axis=1)
        )
        cheapest_first = np.argsort(
            self.row_tokens[source, target], kind="stable"
        )
        # Indices of the candidates' lengths, and the tokens of their rows.
        self.candidates = source[cheapest_first], target[cheapest_first]
        self.candidate_tokens = self.row_tokens[self.candidates]

    @property
    def last(self) -> Corner:
        """The corner that contains all pairs."""
        return len(self.sources) - 1, len(self.targets) - 1

    def tokens_of(self, corner: Corner) -> tuple[int, int]:
        """Returns what corners are ordered by: the first is the cheapest."""
        return self.row_tokens[corner], self.sources[corner[0]]

    def distance(self, one: Corner, other: Corner) -> int:
        """Returns the number of tokens between two corners, both sides."""
        source = self.sources[one[0]] - self.sources[other[0]]
        target = self.targets[one[1]] - self.targets[other[1]]
        return int(abs(source) + abs(target))

    def assign(self, corners: Sequence[Corner]) -> np.ndarray:
        """Returns the index of the cheapest corner for each table entry.

        It is `len(corners)` where no corner contains the pairs.
        """
        assigned = np.full(self.pairs.shape, len(corners))
        costliest_first = sorted(
            range(len(corners)),
            key=lambda c: (*self.tokens_of(corners[c]), c),
            reverse=True,
        )
        for c in costliest_first:
            source, target = corners[c]
            assigned[: source + 1, : target + 1] = c
        return assigned

    def sums(self, corners: Sequence[Corner], values: np.ndarray) -> np.ndarray:
        """Returns the sum of a table over the pairs of each corner."""
        size = len(corners) + 1
        assigned = self.assign(corners).ravel()
        return np.bincount(assigned, values.ravel(), size)[:-1]

    def epoch_tokens(self, num_rows, most_rows, row_tokens):
        """Returns the tokens of all batches of one shape, padding included."""
        num_rows = np.where(num_rows > 0, np.maximum(1, np.rint(num_rows)), 0)
        batches = np.ceil(num_rows / most_rows)
        rows = even_rows(num_rows, most_rows, self.multiple)
        return batches * rows * row_tokens

    def cost(self, corners: Sequence[Corner]) -> float:
        """Returns the tokens of an epoch, infinite if a pair has no corner."""
        if self.sums(corners, self.pairs).sum() < self.pairs.sum():
            return np.inf
        index = tuple(np.transpose(corners))
        rows = self.sums(corners, self.rows)
        return float(
            self.epoch_tokens(
                rows, self.most_rows[index], self.row_tokens[index]
            ).sum()
        )

    def best_addition(self, corners: Sequence[Corner]) -> Corner:
        """Returns the corner that lowers the cost of a set most."""
        if not corners:
            return self.last
        assigned, tokens = self.assign(corners), self.candidate_tokens
        outside = assigned == len(corners)
        _, taken = self._moved_rows(outside, self.last)
        limit = taken * tokens
        moves = []
        for c, corner in enumerate(corners):
            total, moved = self._moved_rows(assigned == c, corner)
            moves.append((corner, total, moved))
            cheaper = slice(len(moved))
            taken[cheaper] += moved
            limit += total * self.row_tokens[corner]
            limit[cheaper] -= moved * (
                self.row_tokens[corner] - tokens[cheaper]
            )
        if outside.any():
            limit[~self._contain(outside & (self.pairs > 0))] = np.inf
        # `limit` leaves out the padding rows, so no cost is below it.
        first = np.argmin(limit, keepdims=True)
        highest = self._costs_with(first, taken, moves)
        promising = np.flatnonzero(limit <= np.maximum(highest, limit[first]))
        costs = self._costs_with(promising, taken, moves)
        best = promising[np.argmin(costs)]
        source, target = self.candidates
        return int(source[best]), int(target[best])

    def _moved_rows(self, owned, corner):
        """Returns a corner's rows, and how many would move to candidates.

        The candidates are those whose rows have fewer tokens; all of them if
        the corner contains all pairs. `owned` marks the corner's entries.
        """
        source, target = corner
        part = slice(source + 1), slice(target + 1)
        below = np.where(owned[part], self.rows[part], 0)
        below = below.cumsum(axis=0).cumsum(axis=1)
        cheaper = slice(len(self.candidate_tokens))
        if corner != self.last:
            tokens = self.row_tokens[corner]
            cheaper = slice(np.searchsorted(self.candidate_tokens, tokens))
        sources, targets = self.candidates
        entries = np.minimum(sources[cheaper], source) * (target + 1)
        entries += np.minimum(targets[cheaper], target)
        self.work += _FIXED_WORK + below.size + 2 * len(entries)
        return below[-1, -1], below.ravel().take(entries)

    def _contain(self, marked):
        """Tells which candidates contain all the marked entries."""
        sources, targets = np.nonzero(marked)
        return (self.candidates[0] >= sources.max(initial=0)) & (
            self.candidates[1] >= targets.max(initial=0)
        )

    def _costs_with(self, which, taken, moves):
        """Returns the costs with one of some candidates added to a set."""
        self.work += 8 * len(which) * len(moves)
        added = tuple(side[which] for side in self.candidates)
        costs = self.epoch_tokens(
            taken[which], self.most_rows[added], self.row_tokens[added]
        )
        for corner, total, moved in moves:
            rows = np.full(len(which), total)
            cheaper = which < len(moved)
            rows[cheaper] -= moved[which[cheaper]]
            costs += self.epoch_tokens(
                rows, self.most_rows[corner], self.row_tokens[corner]
            )
        return costs


def search_batch_shapes(
    lengths: np.ndarray,
    batch_tokens: int,
    max_shapes: int,
    batch_multiple: int = 1,
    weights: np.ndarray | None = None,
) -> list[tuple[int, int, int]]:
    """Finds at most `max_shapes` batch shapes with a low cost.

    Returns `(rows, source_length, target_length)` of each shape that has pairs,
    cheapest row first.
    """
    entries = _ROUND_WORK / max_shapes**2 - _FIXED_WORK
    most_lengths = int(max(entries, 0) ** 0.5)
    table = LengthTable(
        lengths,
        batch_tokens,
        batch_multiple,
        weights,
        min(_MOST_LENGTHS, max(_FEWEST_LENGTHS, most_lengths)),
    )
    corners = _best_corners(table, min(max_shapes, len(table.candidate_tokens)))
    corners = sorted(corners, key=table.tokens_of)
    pairs = table.sums(corners, table.pairs)
    rows = np.maximum(1, np.rint(table.sums(corners, table.rows)))
    return [
        (
            int(even_rows(rows[c], table.most_rows[corner], batch_multiple)),
            int(table.sources[corner[0]]),
            int(table.targets[corner[1]]),
        )
        for c, corner in enumerate(corners)
        if pairs[c]
    ]


def _best_corners(table, size: int) -> list[Corner]:
    best = _improve(table, _fill(table, [], size))
    partitions = [
        best_partition(table, size, side)
        for side in ("longer", "source", "target")
    ]
    for start in sorted(partitions, key=table.cost):
        if table.work < _SEARCH_WORK or table.cost(start) < table.cost(best):
            start = _improve(table, _fill(table, start, size))
            best = min(best, start, key=table.cost)
    best = _leave_optimum(table, best)
    candidates = list(
        zip(*(side.tolist() for side in table.candidates), strict=True)
    )
    for index in evenly_spaced(len(candidates), _MOST_STARTS) - 1:
        if table.work < _SEARCH_WORK:
            start = _fill(table, [table.last, candidates[index]], size)
            best = min(best, _improve(table, start[:size]), key=table.cost)
    return best


def _fill(table, corners: list[Corner], size: int) -> list[Corner]:
    corners = list(corners)
    while len(corners) < size:
        corners.append(table.best_addition(corners))
    return corners


def _improve(table, corners: list[Corner]) -> list[Corner]:
    """Moves one corner after another until none can be improved."""
    cost, unchanged, c = table.cost(corners), 0, 0
    while unchanged < len(corners) and table.work < _MOST_WORK:
        others = corners[:c] + corners[c + 1 :]
        moved = [*others[:c], table.best_addition(others), *others[c:]]
        moved_cost = table.cost(moved)
        unchanged += 1
        if moved_cost < cost:
            corners, cost, unchanged = moved, moved_cost, 0
        c = (c + 1) % len(corners)
    return corners


def _leave_optimum(table, corners: list[Corner]) -> list[Corner]:
    """Places two to four neighboring corners anew as long as that helps."""
    size = len(corners)
    cost, trial, failures = table.cost(corners), 0, 0
    while failures < 3 * size and table.work < _SEARCH_WORK:
        number, at = 2 + trial % 3, corners[trial // 3 % size]
        trial, failures = trial + 1, failures + 1
        if number >= size:
            continue
        far_first = sorted(
            corners, key=lambda corner, at=at: -table.distance(corner, at)
        )
        other = _improve(table, _fill(table, far_first[:-number], size))
        other_cost = table.cost(other)
        if other_cost < cost:
            corners, cost, failures = sorted(other), other_cost, 0
    return corners


def best_partition(table, max_shapes: int, side: str) -> list[Corner]:
    """Returns the exact best partition of one length into intervals.

    `side` is the length: "source", "target", or the "longer" of the two.
    """
    chain = _nested_corners(table, side)
    index = tuple(np.transpose(chain))
    rows = table.rows.cumsum(axis=0).cumsum(axis=1)[index]
    rows = np.append(0, rows)
    inside = rows[None, 1:] - rows[:, None]  # pairs after start, up to end
    cost = table.epoch_tokens(
        np.maximum(inside, 0), table.most_rows[index], table.row_tokens[index]
    )
    cost = np.pad(cost, ((0, 0), (1, 0)))
    cost[np.tril_indices(len(cost), -1)] = np.inf
    best = np.where(np.arange(len(cost)) == 0, 0.0, np.inf)
    starts = []
    for _ in range(max_shapes):
        total = best[:, None] + cost
        starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    corners, end = [], len(chain)
    for start in reversed(starts):
        if start[end] < end:
            corners.append(chain[end - 1])
        end = start[end]
    return corners


def _nested_corners(table, side: str) -> list[Corner]:
    last_source, last_target = table.last
    if side == "source":
        return [(source, last_target) for source in range(last_source + 1)]
    if side == "target":
        return [(last_source, target) for target in range(last_target + 1)]
    lengths = np.union1d(table.sources, table.targets)
    below = [
        np.searchsorted(edges, lengths, side="right") - 1
        for edges in (table.sources, table.targets)
    ]
    nested = zip(*(side.tolist() for side in below), strict=True)
    # Below the shortest length of a side there are no pairs.
    return [corner for corner in nested if min(corner) >= 0]


def _count_lengths(lengths, weights, most_lengths):
    """Returns both sides' bins, and pairs and rows an epoch in each."""
    counts = [np.zeros(1, "int64"), np.zeros(1, "int64")]
    parts = [
        slice(start, start + _ROWS_AT_A_TIME)
        for start in range(0, len(lengths), _ROWS_AT_A_TIME)
    ]
    for part in parts:
        for side in (0, 1):
            more = np.bincount(np.asarray(lengths[part])[:, side])
            size = max(len(more), len(counts[side]))
            counts[side] = sum(
                np.pad(count, (0, size - len(count)))
                for count in (counts[side], more)
            )
    (sources, source_bins), (targets, target_bins) = (
        bin_lengths(count, most_lengths) for count in counts
    )
    shape = len(sources), len(targets)
    pairs = np.zeros(shape[0] * shape[1], "int64")
    rows = np.zeros(shape[0] * shape[1])
    for part in parts:
        source, target = np.asarray(lengths[part]).T
        entries = source_bins[source] * shape[1] + target_bins[target]
        pairs += np.bincount(entries, minlength=len(pairs))
        if weights is not None:
            part_weights = np.asarray(weights[part], "float64")
            rows += np.bincount(entries, part_weights, len(rows))
    if weights is None:
        rows += pairs
    return sources, targets, pairs.reshape(shape), rows.reshape(shape)


def bin_lengths(counts: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the upper edges of at most `most` bins, and each length's bin.

    `counts` are the numbers of pairs of each length, from 0 on.
    """
    edges = np.flatnonzero(counts)
    if len(edges) > most:
        # Half of the edges by rank of length, half by number of pairs, for
        # resolution both in a long sparse tail and where most pairs are.
        shares = np.cumsum(counts[edges]) / counts.sum()
        wanted = np.linspace(0, 1, most // 2)
        by_pairs = np.searchsorted(shares, wanted).clip(max=len(edges) - 1)
        by_rank = evenly_spaced(len(edges), most // 2) - 1
        edges = edges[np.union1d(by_pairs, by_rank)]
    return edges, np.searchsorted(edges, np.arange(len(counts)))


def evenly_spaced(size: int, most: int) -> np.ndarray:
    """Returns at most `most` 1-based indices, evenly spaced up to `size`."""
    return np.unique(np.linspace(1, size, min(size, most)).round()).astype(int)
