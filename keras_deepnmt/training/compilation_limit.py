"""Stops training at a batch shape that was not planned."""

from collections.abc import Sequence

import keras

from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.errors import UserError


class CompilationLimit(keras.callbacks.Callback):
    """Stops training at a batch whose shape is not one of the planned shapes.

    XLA compiles the step once per batch shape, which takes seconds to minutes
    each time. `data.choose_batch_shapes` plans few shapes; other batches would
    make the run compile again and again without a message.

    Args:
        batch_shapes: shapes of the training batches of all replicas together.
        evaluation_batch_shapes: shapes of the validation batches. Defaults to
            `None`: any shape is allowed.

    Raises:
        UserError: during training, after the first update with another shape.

    Example:
    >>> batch_shapes = [keras_deepnmt.data.BatchShape(64, 16, 18)]
    >>> limit = keras_deepnmt.training.CompilationLimit(batch_shapes)
    >>> limit.batch_shapes[0].num_tokens
    2176
    """

    def __init__(
        self,
        batch_shapes: Sequence[BatchShape],
        evaluation_batch_shapes: Sequence[BatchShape] | None = None,
    ):
        super().__init__()
        self.batch_shapes = tuple(batch_shapes)
        self.evaluation_batch_shapes = evaluation_batch_shapes

    def set_model(self, model):
        super().set_model(model)
        # Kept, because on JAX each use of `self.model` within an epoch takes
        # all weights out of the step.
        self._training_shapes = model.training_shapes
        self._evaluation_shapes = model.evaluation_shapes
        strategy = getattr(model, "distribute_strategy", None)
        self._replicas = strategy.num_replicas_in_sync if strategy else 1

    def on_train_batch_end(self, batch, logs=None):
        self._check("training", self._training_shapes, self.batch_shapes)

    def on_test_batch_end(self, batch, logs=None):
        batch_shapes = self.evaluation_batch_shapes
        if batch_shapes is not None:
            self._check("evaluation", self._evaluation_shapes, batch_shapes)

    def _check(self, step, shapes, batch_shapes):
        expected = [
            (
                shape.batch_size // self._replicas,
                shape.source_length,
                shape.target_length,
            )
            for shape in batch_shapes
        ]
        unexpected = set(shapes).difference(expected)
        if unexpected:
            raise UserError(
                f"the {step} step met a batch of "
                f"{_written(unexpected.pop())} (rows of a replica x source x "
                "target tokens), which is not one of the "
                f"{len(expected)} planned shapes: "
                f"{', '.join(map(_written, expected))}. Each further shape is "
                "one more compilation, so training stops; the checkpoints are "
                "kept. Give `fit` batches of these shapes "
                "(`data.training_dataset`), or plan with more `max_shapes`."
            )


def _written(shape):
    return " x ".join(map(str, shape))
