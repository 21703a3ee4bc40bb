"""The order of all batches of all epochs, as a function of (seed, step)."""

import threading
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.batches.batch_shapes import (
    BatchShape,
    assign_batch_shapes,
)
from keras_deepnmt.data.batches.epoch_order import (
    shuffled_order,
    weighted_repeats,
)

_ROWS_AT_A_TIME = 1_000_000
# Threads that read ahead stand on both sides of an epoch's end.
_EPOCHS_KEPT = 2


class BatchPlan:
    """Tells which rows make which batch, for any step, without any state.

    An epoch holds every pair exactly once: each batch shape's rows in a seeded
    order, dealt evenly over the fewest batches that hold them, then all batches
    of all batch shapes in one seeded order. Any step is reached directly, so
    training resumes from (seed, step) alone. The same numbers give the same
    order on every machine and NumPy version.

    With `weights`, a row appears `floor(weight)` or `ceil(weight)` times in an
    epoch, in expectation its weight; weights are scaled a little so that every
    epoch has the same number of batches.

    Resident memory is 9 bytes a pair (the batch shape, and two epochs' orders),
    beside the weights.

    Args:
        lengths: `(n, 2)` integers, `PairStore.lengths`.
        batch_shapes: The shapes, for instance from `choose_batch_shapes`.
        seed: Non-negative integer.
        weights: `(n,)` expected appearances of each row in an epoch. Defaults
            to one each.
        shuffle: `False` keeps the rows in order and the batch shapes one after
            the other. Defaults to `True`.

    Raises:
        ValueError: if a pair fits no batch shape, there are no pairs, `seed` is
            negative, or `weights` are not one non-negative number a row.

    Example:
    >>> lengths = np.array([[3, 4], [4, 4], [8, 9]])
    >>> batch_shapes = (BatchShape(2, 4, 4), BatchShape(1, 8, 9))
    >>> plan = BatchPlan(lengths, batch_shapes, seed=1)
    >>> plan.batches_per_epoch
    2
    >>> batch_shape, rows = plan.batch(1_000_001)
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_shapes: Sequence[BatchShape],
        seed: int = 0,
        weights: np.ndarray | None = None,
        shuffle: bool = True,
    ):
        if seed < 0:
            raise ValueError(f"`seed` must not be negative. Received: {seed}")
        self.batch_shapes = tuple(batch_shapes)
        self.seed = seed
        self.shuffle = shuffle
        self._weights = _checked_weights(weights, len(lengths))
        self._assigned = assign_batch_shapes(lengths, self.batch_shapes)
        self._check_fit(lengths)
        self._count(lengths)
        self.batches_per_shape = tuple(
            shape.num_batches(rows)
            for shape, rows in zip(
                self.batch_shapes, self.rows_per_shape, strict=True
            )
        )
        self._first_batch = np.cumsum((0, *self.batches_per_shape))
        self._first_row = np.cumsum((0, *self.rows_per_shape))
        self._epochs: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._lock = threading.Lock()

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches, hence updates, in which each pair is seen once."""
        return int(self._first_batch[-1])

    @property
    def padding_fraction(self) -> float:
        """Share of an epoch's tokens, both sides, that are padding."""
        padded = self._padded_tokens().sum()
        return float(1 - self._real_tokens.sum() / padded)

    @property
    def target_padding_fraction(self) -> float:
        """Share of an epoch's target tokens that are padding."""
        padded = self._padded_tokens()[:, 1].sum()
        return float(1 - self._real_tokens[:, 1].sum() / padded)

    @property
    def target_tokens_per_batch(self) -> float:
        """Mean real target tokens of a batch, end of sentence included."""
        return float(self._real_tokens[:, 1].sum() / self.batches_per_epoch)

    def batch(self, step: int) -> tuple[BatchShape, np.ndarray]:
        """Gives the batch of a step.

        Args:
            step: Number of the update, from 0, over all epochs.

        Returns:
            The batch shape and its int64 rows, at most
            `batch_shape.batch_size` of them.

        Raises:
            IndexError: if `step` is negative.
        """
        if step < 0:
            raise IndexError(f"`step` must not be negative. Received: {step}")
        epoch, position = divmod(step, self.batches_per_epoch)
        batch_order, rows = self._epoch(epoch)
        number = batch_order[position]
        c = int(np.searchsorted(self._first_batch, number, side="right")) - 1
        index = int(number - self._first_batch[c])
        # Dealt evenly: a batch of three rows would count as a full update.
        start, stop = (
            self._first_row[c]
            + end * self.rows_per_shape[c] // self.batches_per_shape[c]
            for end in (index, index + 1)
        )
        return self.batch_shapes[c], rows[start:stop].astype("int64")

    def describe(self) -> str:
        """Tabulates the batch shapes and what an epoch will cost.

        Returns:
            Several lines: one for each batch shape, then padding and counts.
        """
        lines = ["batch  source  target      pairs    batches  padding"]
        padded = self._padded_tokens().sum(axis=1)
        for c, shape in enumerate(self.batch_shapes):
            padding = 1 - self._real_tokens[c].sum() / max(padded[c], 1)
            lines.append(
                f"{shape.batch_size:5d}  {shape.source_length:6d}  "
                f"{shape.target_length:6d}  {self.rows_per_shape[c]:9,d}  "
                f"{self.batches_per_shape[c]:9,d}  {100 * padding:6.1f}%"
            )
        lines += [
            f"{sum(self.rows_per_shape):,d} pairs in "
            f"{self.batches_per_epoch:,d} batches an epoch",
            f"expected padding {100 * self.padding_fraction:.1f}% "
            f"(target side {100 * self.target_padding_fraction:.1f}%)",
            f"{self.target_tokens_per_batch:,.0f} real target tokens a batch",
            f"{len(self.batch_shapes)} compilations",
        ]
        return "\n".join(lines)

    def _count(self, lengths: np.ndarray):
        # Per batch shape: rows of an epoch, their real tokens on either side.
        num_shapes = len(self.batch_shapes)
        sums = np.zeros((num_shapes, 3))
        for start in range(0, len(lengths), _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            assigned = self._assigned[part]
            weights = np.ones(len(assigned))
            if self._weights is not None:
                weights = np.asarray(self._weights[part], "float64")
            sums[:, 0] += np.bincount(assigned, weights, num_shapes)
            for side in (0, 1):
                tokens = weights * lengths[part, side]
                sums[:, 1 + side] += np.bincount(assigned, tokens, num_shapes)
        rows = np.where(sums[:, 0] > 0, np.maximum(1, sums[:, 0].round()), 0)
        self.rows_per_shape = tuple(rows.astype(int).tolist())
        # Weights are scaled to whole rows, and the tokens with them.
        scale = rows / np.where(sums[:, 0] > 0, sums[:, 0], 1)
        self._real_tokens = sums[:, 1:] * scale[:, None]
        if not any(self.rows_per_shape):
            raise ValueError("`weights` must not all be zero.")

    def _padded_tokens(self) -> np.ndarray:
        return np.array(
            [
                [
                    batches * shape.batch_size * shape.source_length,
                    batches * shape.batch_size * shape.target_length,
                ]
                for shape, batches in zip(
                    self.batch_shapes, self.batches_per_shape, strict=True
                )
            ]
        )

    def _check_fit(self, lengths: np.ndarray):
        if len(lengths) == 0:
            raise ValueError("`lengths` must hold at least one pair.")
        outside = np.flatnonzero(self._assigned == len(self.batch_shapes))
        if len(outside):
            raise ValueError(
                "Every pair must fit a batch shape. "
                f"Received: {len(outside)} that do not, the first of them row "
                f"{outside[0]} with lengths {lengths[outside[0]].tolist()}, "
                f"batch_shapes={self.batch_shapes}"
            )

    def _epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        with self._lock:
            if epoch not in self._epochs:
                while len(self._epochs) >= _EPOCHS_KEPT:
                    del self._epochs[next(iter(self._epochs))]
                self._epochs[epoch] = self._shuffled(epoch)
            return self._epochs[epoch]

    def _shuffled(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.empty(self._first_row[-1], "uint32")
        for c in range(len(self.batch_shapes)):
            part = np.flatnonzero(self._assigned == c).astype("uint32")
            if self._weights is not None:
                repeats = weighted_repeats(
                    self._weights[part],
                    self.rows_per_shape[c],
                    self.seed,
                    epoch,
                    c,
                    0,
                )
                part = np.repeat(part, repeats)
            part = part[self._order(len(part), epoch, c, 1)]
            rows[self._first_row[c] : self._first_row[c + 1]] = part
        order = self._order(
            self.batches_per_epoch, epoch, len(self.batch_shapes)
        )
        return order, rows

    def _order(self, size: int, *stream: int) -> np.ndarray:
        if self.shuffle:
            return shuffled_order(size, self.seed, *stream)
        return np.arange(size)


def _checked_weights(weights, size: int) -> np.ndarray | None:
    if weights is None:
        return None
    weights = np.asarray(weights)
    if weights.shape != (size,) or not (weights >= 0).all():
        raise ValueError(
            "`weights` must hold one non-negative number a row. "
            f"Received: shape {weights.shape} for {size} rows"
        )
    return weights
