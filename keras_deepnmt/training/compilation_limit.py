"""Stops training at a batch shape that was not planned."""

from collections.abc import Sequence

import keras

from keras_deepnmt.data.cells import Cell
from keras_deepnmt.errors import UserError


class CompilationLimit(keras.callbacks.Callback):
    """Stops training at a batch whose shape is not one of the planned shapes.

    XLA compiles the step once per batch shape, which takes seconds to minutes
    each time. Batches planned by `data.choose_cells` have few shapes; other
    batches would make the run compile again and again without a message.

    Args:
        cells: shapes of the training batches of all replicas together.
        evaluation_cells: shapes of the validation batches. Defaults to `None`:
            any shape is allowed.

    Raises:
        UserError: during training, after the first update with another shape.

    Example:
    >>> cells = [keras_deepnmt.data.Cell(64, 16, 18)]
    >>> limit = keras_deepnmt.training.CompilationLimit(cells)
    >>> limit.cells[0].num_tokens
    2176
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        evaluation_cells: Sequence[Cell] | None = None,
    ):
        super().__init__()
        self.cells = tuple(cells)
        self.evaluation_cells = evaluation_cells

    def on_train_batch_end(self, batch, logs=None):
        self._check("training", self.model.training_shapes, self.cells)

    def on_test_batch_end(self, batch, logs=None):
        cells = self.evaluation_cells
        if cells is not None:
            self._check("evaluation", self.model.evaluation_shapes, cells)

    def _check(self, step, shapes, cells):
        strategy = getattr(self.model, "distribute_strategy", None)
        replicas = strategy.num_replicas_in_sync if strategy else 1
        expected = [
            (
                cell.batch_size // replicas,
                cell.source_length,
                cell.target_length,
            )
            for cell in cells
        ]
        unexpected = shapes.difference(expected)
        if unexpected:
            raise UserError(
                f"the {step} step met a batch of "
                f"{_written(unexpected.pop())} (rows of a replica x source x "
                f"target tokens), which is none of the {len(cells)} shapes "
                f"planned: {', '.join(map(_written, expected))}. Each further "
                "shape is one more compilation, so training stops; the "
                "checkpoints are kept. Give `fit` batches of these shapes "
                "(`data.training_dataset`), or plan with more `max_shapes`."
            )


def _written(shape):
    return " x ".join(map(str, shape))
