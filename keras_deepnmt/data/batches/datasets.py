"""Datasets for `fit`: `tf.data` on TensorFlow, Grain on other backends."""

import contextlib
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_deepnmt.data.batches.alignment_inputs import AlignmentInputs
from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    BatchShape,
    assign_batch_shapes,
    rows_for,
)
from keras_deepnmt.data.batches.batch_source import grain_batches
from keras_deepnmt.data.batches.batch_transforms import BatchTransform
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.errors import UserError
from keras_deepnmt.xla import tuned

if TYPE_CHECKING:
    import grain.python as grain


@contextlib.contextmanager
def clear_data_errors():
    """Restores a `UserError` that TensorFlow wrapped while reading a dataset.

    TensorFlow turns an error in a dataset into an `InvalidArgumentError` with
    the whole traceback; this raises the `UserError` quoted in it.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        quoted = re.search(r"\.UserError: (.+)", str(error))
        if quoted is None:
            raise
        raise UserError(quoted[1]) from None


def training_dataset(
    store: PairStore,
    plan: BatchPlan,
    start_step: int = 0,
    num_steps: int | None = None,
    transforms: Sequence[BatchTransform] = (),
):
    """Returns a dataset of the training batches from a step on.

    Args:
        store: The pairs.
        plan: The plan that tells which rows are in which batch.
        start_step: Step of the first batch.
        num_steps: Number of batches. Defaults to no end.
        transforms: Changes made to each batch, in this order, for instance
            `SubwordSampling` and `WordDropout`.

    Returns:
        A `tf.data.Dataset` on TensorFlow, otherwise a Grain dataset.

    Example:
    >>> model.fit(training_dataset(store, plan, start_step=500, num_steps=100))
    """
    batches = grain_batches(
        store, plan, start_step, num_steps, transforms=transforms
    )
    aligned = any(isinstance(one, AlignmentInputs) for one in transforms)
    return _to_backend_dataset(batches, num_steps, aligned)


def validation_dataset(
    store: PairStore,
    batch_shapes: Sequence[BatchShape],
    batch_multiple: int = 1,
):
    """Returns a dataset with each pair of a split once, in a fixed order.

    Args:
        store: The pairs.
        batch_shapes: The batch shapes of training. One more shape is added
            for pairs too long for all of them. It has no more tokens on a side
            than the largest of the others, or `batch_multiple` rows.
        batch_multiple: The number of rows of the added shape is a multiple of
            this; give the number of replicas.

    Returns:
        A `tf.data.Dataset` on TensorFlow, otherwise a Grain dataset.

    Example:
    >>> valid = validation_dataset(store, batch_shapes)
    >>> model.fit(dataset, validation_data=valid)
    """
    plan = validation_plan(store.lengths, batch_shapes, batch_multiple)
    return plan_dataset(store, plan)


def plan_dataset(store: PairStore, plan: BatchPlan):
    """Returns a dataset of one epoch of a plan, without transforms.

    It is a `tf.data.Dataset` on TensorFlow, otherwise a Grain dataset.
    """
    return training_dataset(store, plan, 0, plan.batches_per_epoch)


def validation_plan(
    lengths: np.ndarray,
    batch_shapes: Sequence[BatchShape],
    batch_multiple: int = 1,
    num_validations: int | None = None,
) -> BatchPlan:
    """Plans one epoch with each pair in order, in the batch shapes of training.

    For pairs too long for all of them one more shape is added: as many rows, a
    multiple of `batch_multiple`, as keep within the tokens of the others.

    With `num_validations`, the number of times that the plan is used, shapes
    are left out whose compilation would cost more than the padding they save.
    """
    batch_shapes = tuple(batch_shapes)
    outside = assign_batch_shapes(lengths, batch_shapes) == len(batch_shapes)
    if outside.any():
        source, target = np.asarray(lengths)[outside].max(axis=0).tolist()
        batch_tokens = max(
            shape.batch_size * max(shape.source_length, shape.target_length)
            for shape in batch_shapes
        )
        rows = rows_for(source, target, batch_tokens, batch_multiple)
        batch_shapes += (BatchShape(rows, source, target),)
    if num_validations is not None:
        batch_shapes = _worth_compiling(lengths, batch_shapes, num_validations)
    return BatchPlan(lengths, batch_shapes, shuffle=False)


def _worth_compiling(
    lengths: np.ndarray, batch_shapes: Sequence[BatchShape], num_uses: int
) -> tuple[BatchShape, ...]:
    """Removes one shape after another, as long as that costs less in all."""
    lengths, repeats = np.unique(lengths, axis=0, return_counts=True)
    compilation = tuned.COMPILATION_BATCHES * max(
        shape.num_tokens for shape in batch_shapes
    )

    def cost(shapes):
        assigned = assign_batch_shapes(lengths, shapes)
        rows = np.bincount(assigned, repeats, len(shapes) + 1).astype(int)
        if rows[-1]:
            return math.inf
        padded = [
            shape.num_batches(count) * shape.num_tokens
            for shape, count in zip(shapes, rows.tolist(), strict=False)
        ]
        return num_uses * sum(padded) + compilation * np.count_nonzero(padded)

    kept = tuple(batch_shapes)
    while len(kept) > 1:
        fewer = min(
            (kept[:i] + kept[i + 1 :] for i in range(len(kept))), key=cost
        )
        if cost(fewer) > cost(kept):
            break
        kept = fewer
    return kept


def _to_backend_dataset(
    batches: "grain.IterDataset", num_steps: int | None, aligned: bool
):
    import keras

    if keras.config.backend() != "tensorflow":
        return batches
    from keras_deepnmt.models.training_step.tensorflow_batches import (
        open_shape_dataset,
    )

    return open_shape_dataset(batches, num_steps, aligned)
