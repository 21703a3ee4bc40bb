"""The order of batches of a run whose batches changed after some updates."""

from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape


class ContinuedPlan(BatchPlan):
    """A batch plan that takes the place of another one at some update.

    The rows that the other plan has left in its epoch come first, in the batch
    shapes of this plan; then whole epochs follow. So each pair is still used
    once in each epoch, whatever the update. The batch of any step is a function
    of both plans and of that update, so training resumes from it alone. Steps
    before the update have the batches of the other plan, which may be a
    continued one, too. `start_step` is the number of updates made with
    `earlier`.
    """

    def __init__(
        self,
        earlier: BatchPlan,
        start_step: int,
        lengths: np.ndarray,
        batch_shapes: Sequence[BatchShape],
        weights: np.ndarray | None = None,
    ):
        super().__init__(lengths, batch_shapes, earlier.seed, weights)
        self._earlier, self._start_step = earlier, start_step
        self._epoch, self._rows = earlier.rows_left(start_step)
        self._rest = None
        if len(self._rows):
            self._rest = BatchPlan(
                np.asarray(lengths)[self._rows], batch_shapes, self.seed
            )

    def batch(self, step: int) -> tuple[BatchShape, np.ndarray]:
        if step < self._start_step:
            return self._earlier.batch(step)
        epoch, position = self.place(step)
        if epoch == self._epoch and self._rest is not None:
            # In the order of this epoch, not in that of the first one.
            step = epoch * self._rest.batches_per_epoch + position
            shape, rows = self._rest.batch(step)
            return shape, self._rows[rows]
        return super().batch(epoch * self.batches_per_epoch + position)

    def place(self, step: int) -> tuple[int, int]:
        if step < self._start_step:
            return self._earlier.place(step)
        position, epoch = step - self._start_step, self._epoch
        if self._rest is not None:
            if position < self._rest.batches_per_epoch:
                return epoch, position
            position -= self._rest.batches_per_epoch
            epoch += 1
        epochs, position = divmod(position, self.batches_per_epoch)
        return epoch + epochs, position

    def rows_left(self, step: int) -> tuple[int, np.ndarray]:
        if step == self._start_step:
            return self._epoch, self._rows
        return super().rows_left(step)
