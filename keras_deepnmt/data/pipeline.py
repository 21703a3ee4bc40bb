"""Datasets for `fit`: `tf.data` on TensorFlow, Grain itself elsewhere."""

import contextlib
import math
import re
from collections.abc import Sequence

import grain.python as grain
import numpy as np

from keras_deepnmt.data.batch_source import BatchSource as BatchSource
from keras_deepnmt.data.batch_source import grain_batches as grain_batches
from keras_deepnmt.data.batch_source import make_batch as make_batch
from keras_deepnmt.data.batch_transforms import BatchTransform
from keras_deepnmt.data.batching import BatchPlan
from keras_deepnmt.data.cells import Cell, assign_cells, rows_for
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.errors import UserError


@contextlib.contextmanager
def clear_data_errors():
    """Raises a `UserError` met while reading as itself.

    TensorFlow turns an error in a dataset into an `InvalidArgumentError` that
    quotes the whole traceback; the one line for the user is in it.

    Raises:
        UserError: where the body raised one, or an error that quotes one.

    Example:
    >>> with clear_data_errors():
    ...     model.fit(training_dataset(store, plan, num_steps=100))
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
    """Gives `fit` the batches from a step on.

    Args:
        store: Where the pairs are.
        plan: Which rows make which batch.
        start_step: Step of the first batch.
        num_steps: Number of batches. Defaults to endlessly many.
        transforms: What is done to each batch, in this order, for instance
            `SubwordSampling` and `WordDropout`.

    Returns:
        A `tf.data.Dataset` on TensorFlow, else a Grain dataset.

    Example:
    >>> model.fit(training_dataset(store, plan, start_step=500, num_steps=100))
    """
    batches = grain_batches(
        store, plan, start_step, num_steps, transforms=transforms
    )
    return _for_backend(batches, num_steps)


def validation_dataset(store: PairStore, cells: Sequence[Cell]):
    """Gives each pair of a split exactly once, always in the same order.

    Args:
        store: Where the pairs are.
        cells: The shapes of training. Pairs too long for all of them get one
            more shape.

    Returns:
        A `tf.data.Dataset` on TensorFlow, else a Grain dataset.

    Example:
    >>> model.fit(dataset, validation_data=validation_dataset(store, cells))
    """
    plan = validation_plan(store.lengths, cells)
    batches = grain_batches(store, plan, 0, plan.batches_per_epoch)
    return _for_backend(batches, plan.batches_per_epoch)


def validation_plan(lengths: np.ndarray, cells: Sequence[Cell]) -> BatchPlan:
    """Plans each pair once, in order, in the shapes of training.

    Args:
        lengths: `(n, 2)` integers, `PairStore.lengths`.
        cells: The shapes of training.

    Returns:
        A plan of which one epoch is to be read.

    Example:
    >>> validation_plan(np.array([[9, 9]]), [Cell(6, 4, 4)]).cells[-1]
    Cell(batch_size=6, source_length=9, target_length=9)
    """
    cells = tuple(cells)
    outside = assign_cells(lengths, cells) == len(cells)
    if outside.any():
        source, target = np.asarray(lengths)[outside].max(axis=0).tolist()
        batch_tokens = max(
            cell.batch_size * max(cell.source_length, cell.target_length)
            for cell in cells
        )
        # Whatever the number of replicas is, it divides all batch sizes.
        multiple = math.gcd(*(cell.batch_size for cell in cells))
        rows = rows_for(source, target, batch_tokens, multiple)
        cells += (Cell(rows, source, target),)
    return BatchPlan(lengths, cells, shuffle=False)


def _for_backend(batches: grain.IterDataset, num_steps: int | None):
    import keras

    if keras.config.backend() != "tensorflow":
        return batches
    from keras_deepnmt.models.training_step.tensorflow_batches import (
        open_shape_dataset,
    )

    return open_shape_dataset(batches, num_steps)
