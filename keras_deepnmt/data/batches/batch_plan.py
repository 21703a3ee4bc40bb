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
# Threads that read ahead need two epochs around the end of an epoch.
_EPOCHS_KEPT = 2


class BatchPlan:
    """Tells which rows are in the batch of any step, without any state.

    An epoch has every pair exactly once: the rows of each batch shape are put
    in a seeded order and divided evenly among as few batches as possible, then
    the batches of all shapes are put in one seeded order. The batch of any step
    is computed directly, so training resumes from (seed, step) alone. The same
    arguments give the same order on every machine and NumPy version.

    With `weights`, a row appears `floor(weight)` or `ceil(weight)` times in an
    epoch, on average as often as its weight. Weights are scaled slightly so
    that every epoch has the same number of batches.

    Memory: 9 bytes per pair (its batch shape, and the orders of two epochs),
    and the weights.

    Args:
        lengths: `(n, 2)` integers, `PairStore.lengths`.
        batch_shapes: The batch shapes, for instance from
            `choose_batch_shapes`.
        seed: Non-negative integer.
        weights: `(n,)` expected appearances of each row in an epoch. Defaults
            to one each.
        shuffle: If `False`, rows stay in order, and so do the batch shapes.
            Defaults to `True`.

    Raises:
        ValueError: if a pair fits no batch shape, if there are no pairs, if
            `seed` is negative, or if `weights` are not one non-negative number
            per row.

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
        self._count_tokens(lengths)
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
        """Number of batches, hence of updates, per epoch."""
        return int(self._first_batch[-1])

    @property
    def padding_fraction(self) -> float:
        """Share of an epoch's tokens, on both sides, that are padding."""
        padded = self._padded_tokens().sum()
        return float(1 - self._real_tokens.sum() / padded)

    @property
    def target_padding_fraction(self) -> float:
        """Share of an epoch's target tokens that are padding."""
        padded = self._padded_tokens()[:, 1].sum()
        return float(1 - self._real_tokens[:, 1].sum() / padded)

    @property
    def target_tokens_per_batch(self) -> float:
        """Mean number of real target tokens per batch, with end of sentence."""
        return float(self._real_tokens[:, 1].sum() / self.batches_per_epoch)

    def batch(self, step: int) -> tuple[BatchShape, np.ndarray]:
        """Returns the batch of a step.

        Args:
            step: Number of the update, counted from 0 over all epochs.

        Returns:
            The batch shape and the int64 row numbers, at most
            `batch_shape.batch_size` of them.

        Raises:
            IndexError: if `step` is negative.
        """
        if step < 0:
            raise IndexError(f"`step` must not be negative. Received: {step}")
        epoch, position = BatchPlan.place(self, step)
        batch_order, rows = self._epoch_order(epoch)
        number = batch_order[position]
        i = int(np.searchsorted(self._first_batch, number, side="right")) - 1
        index = int(number - self._first_batch[i])
        # Rows are divided evenly among the batches: a last batch of three rows
        # would count as a full update.
        start, stop = (
            self._first_row[i]
            + end * self.rows_per_shape[i] // self.batches_per_shape[i]
            for end in (index, index + 1)
        )
        return self.batch_shapes[i], rows[start:stop].astype("int64")

    def place(self, step: int) -> tuple[int, int]:
        """Returns the epoch of a step, and the batch's number in it, from 0."""
        return divmod(step, self.batches_per_epoch)

    def rows_left(self, step: int) -> tuple[int, np.ndarray]:
        """Returns the rows of an epoch that its updates before `step` left.

        Args:
            step: Number of the update, counted from 0 over all epochs.

        Returns:
            The number of the epoch, and the int64 row numbers; none of an epoch
            that `step` begins.
        """
        epoch, position = self.place(step)
        rows = [np.empty(0, "int64")]
        while position and self.place(step)[0] == epoch:
            rows.append(self.batch(step)[1])
            step += 1
        return epoch, np.concatenate(rows)

    def first_steps(self, start: int, stop: int) -> dict[BatchShape, int]:
        """Maps batch shapes to the first steps from `start` that have them.

        They are in the order of these steps. Shapes that no step before `stop`
        has are left out.
        """
        steps: dict[BatchShape, int] = {}
        used = np.count_nonzero(self.batches_per_shape)
        for step in range(start, stop):
            if len(steps) == used:
                break
            steps.setdefault(self.batch(step)[0], step)
        return steps

    def describe(self) -> str:
        """Describes the batch shapes and the cost of an epoch as a table.

        Returns:
            Several lines: one per batch shape, then padding and counts.
        """
        lines = ["batch  source  target      pairs    batches  padding"]
        padded = self._padded_tokens().sum(axis=1)
        for i, shape in enumerate(self.batch_shapes):
            padding = 1 - self._real_tokens[i].sum() / max(padded[i], 1)
            lines.append(
                f"{shape.batch_size:5d}  {shape.source_length:6d}  "
                f"{shape.target_length:6d}  {self.rows_per_shape[i]:9,d}  "
                f"{self.batches_per_shape[i]:9,d}  {100 * padding:6.1f}%"
            )
        lines += [
            f"{sum(self.rows_per_shape):,d} pairs in "
            f"{self.batches_per_epoch:,d} batches an epoch",
            f"expected padding {100 * self.padding_fraction:.1f}% "
            f"(target side {100 * self.target_padding_fraction:.1f}%)",
            f"{self.target_tokens_per_batch:,.0f} real target tokens a batch",
            "1 compilation"
            if len(self.batch_shapes) == 1
            else f"{len(self.batch_shapes)} compilations",
        ]
        return "\n".join(lines)

    def _count_tokens(self, lengths: np.ndarray):
        # Per batch shape: rows of an epoch and their real tokens on each side.
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
        # Weights are scaled so that the number of rows is whole; the tokens are
        # scaled with them.
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

    def _epoch_order(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        with self._lock:
            if epoch not in self._epochs:
                while len(self._epochs) >= _EPOCHS_KEPT:
                    del self._epochs[next(iter(self._epochs))]
                self._epochs[epoch] = self._make_epoch(epoch)
            return self._epochs[epoch]

    def _make_epoch(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.empty(self._first_row[-1], "uint32")
        for i in range(len(self.batch_shapes)):
            part = np.flatnonzero(self._assigned == i).astype("uint32")
            if self._weights is not None:
                repeats = weighted_repeats(
                    self._weights[part],
                    self.rows_per_shape[i],
                    self.seed,
                    epoch,
                    i,
                    0,
                )
                part = np.repeat(part, repeats)
            part = part[self._order(len(part), epoch, i, 1)]
            rows[self._first_row[i] : self._first_row[i + 1]] = part
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
