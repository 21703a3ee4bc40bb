"""From rows to batches: Grain reads them, `tf.data` or JAX takes them."""

import math
from collections.abc import Iterable, Sequence

import grain.python as grain
import numpy as np

from keras_deepnmt.data.batching import BatchPlan
from keras_deepnmt.data.cells import Cell, assign_cells, rows_for
from keras_deepnmt.data.pair_store import PairStore

# Ids of every corpus: see `Tokenizer`.
_BEGIN_ID = 2
_END_ID = 3
_ENDLESS = 2**40


def make_batch(
    cell: Cell, pairs: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Pads pairs to the shape of a cell.

    Args:
        cell: The shape.
        pairs: At most `cell.batch_size` pairs of ids without special ids.

    Returns:
        `({"source_ids", "target_ids"}, labels)`, int32 of shapes `(B, S)`,
        `(B, T)`, `(B, T)`. Missing rows are padding: all 0.

    Raises:
        ValueError: if there are too many pairs or one is too long.

    Example:
    >>> inputs, labels = make_batch(Cell(1, 3, 4), [([7, 8], [9])])
    >>> inputs["source_ids"], inputs["target_ids"], labels
    (array([[7, 8, 3]]...), array([[2, 9, 0, 0]]...), array([[9, 3, 0, 0]]...))
    """
    if len(pairs) > cell.batch_size:
        raise ValueError(
            f"`pairs` must fit the cell. Received: {len(pairs)} pairs, "
            f"cell={cell}"
        )
    source_ids = np.zeros((cell.batch_size, cell.source_length), "int32")
    target_ids = np.zeros((cell.batch_size, cell.target_length), "int32")
    labels = np.zeros_like(target_ids)
    for row, (source, target) in enumerate(pairs):
        if (
            len(source) >= cell.source_length
            or len(target) >= cell.target_length
        ):
            raise ValueError(
                "Each pair with its special ids must fit the cell. Received: "
                f"{len(source)} and {len(target)} ids, cell={cell}"
            )
        source_ids[row, : len(source)] = source
        source_ids[row, len(source)] = _END_ID
        target_ids[row, 0] = _BEGIN_ID
        target_ids[row, 1 : len(target) + 1] = target
        labels[row, : len(target)] = target
        labels[row, len(target)] = _END_ID
    return {"source_ids": source_ids, "target_ids": target_ids}, labels


class BatchSource:
    """A Grain random-access source whose element is a whole batch.

    Element `i` is the batch of step `start_step + i`; its rows are read
    together, ten times as fast as one by one.

    Args:
        store: Where the pairs are.
        plan: Which rows make which batch.
        start_step: Step of the first element.
        num_steps: Number of elements. Defaults to endlessly many.

    Example:
    >>> inputs, labels = BatchSource(store, plan)[0]
    """

    def __init__(
        self,
        store: PairStore,
        plan: BatchPlan,
        start_step: int = 0,
        num_steps: int | None = None,
    ):
        self.store = store
        self.plan = plan
        self.start_step = start_step
        self.num_steps = _ENDLESS if num_steps is None else num_steps

    def __len__(self) -> int:
        return self.num_steps

    def __getitem__(self, index: int):
        cell, rows = self.plan.batch(self.start_step + int(index))
        return make_batch(cell, self.store.read(rows))


def grain_batches(
    store: PairStore,
    plan: BatchPlan,
    start_step: int = 0,
    num_steps: int | None = None,
    num_threads: int = 4,
    prefetch_batches: int = 16,
) -> grain.IterDataset:
    """Reads the batches of a plan ahead of their use.

    Args:
        store: Where the pairs are.
        plan: Which rows make which batch.
        start_step: Step of the first batch; the rest of training follows as
            if it had never stopped.
        num_steps: Number of batches. Defaults to endlessly many.
        num_threads: Threads that read.
        prefetch_batches: Batches read ahead.

    Returns:
        A Grain dataset; each element is what `make_batch` returns.

    Example:
    >>> for inputs, labels in grain_batches(store, plan, num_steps=10):
    ...     pass
    """
    source = BatchSource(store, plan, start_step, num_steps)
    return grain.MapDataset.source(source).to_iter_dataset(
        grain.ReadOptions(
            num_threads=num_threads, prefetch_buffer_size=prefetch_batches
        )
    )


def tensorflow_dataset(batches: Iterable, num_steps: int | None = None):
    """Wraps batches of different shapes as a `tf.data.Dataset` for `fit`.

    Args:
        batches: Gives `({"source_ids", "target_ids"}, labels)` each time it is
            iterated.
        num_steps: Number of batches, which the dataset then knows: with an
            unknown number `fit` counts one update too many. Defaults to
            endlessly many; give `fit` a `steps_per_epoch` then.

    Returns:
        A dataset of open shapes and known cardinality.

    Example:
    >>> dataset = tensorflow_dataset(grain_batches(store, plan), num_steps=100)
    >>> int(dataset.cardinality())
    100
    """
    import tensorflow as tf

    ids = tf.TensorSpec((None, None), tf.int32)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches),
        output_signature=({"source_ids": ids, "target_ids": ids}, ids),
    )
    if num_steps is None:
        num_steps = tf.data.INFINITE_CARDINALITY
    else:
        dataset = dataset.take(num_steps)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(num_steps))
    return dataset.prefetch(2)


def training_dataset(
    store: PairStore,
    plan: BatchPlan,
    start_step: int = 0,
    num_steps: int | None = None,
):
    """Gives `fit` the batches from a step on.

    Args:
        store: Where the pairs are.
        plan: Which rows make which batch.
        start_step: Step of the first batch.
        num_steps: Number of batches. Defaults to endlessly many.

    Returns:
        A `tf.data.Dataset` on TensorFlow, else a Grain dataset.

    Example:
    >>> model.fit(training_dataset(store, plan, start_step=500, num_steps=100))
    """
    batches = grain_batches(store, plan, start_step, num_steps)
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
    return tensorflow_dataset(batches, num_steps)
