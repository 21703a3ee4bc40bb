"""Turns rows into padded batches, read ahead by Grain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_deepnmt.data.batch_transforms import BatchTransform
from keras_deepnmt.data.batching import BatchPlan
from keras_deepnmt.data.cells import Cell
from keras_deepnmt.data.pair_store import PairStore

if TYPE_CHECKING:
    import grain.python as grain

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


def read_pairs(
    store: PairStore, plan: BatchPlan, step: int
) -> tuple[Cell, list[tuple[np.ndarray, np.ndarray]]]:
    """Reads what the batch of a step is made of.

    Args:
        store: Where the pairs are.
        plan: Which rows make which batch.
        step: Number of the update.

    Returns:
        The cell and its pairs of ids, without special ids.

    Example:
    >>> cell, pairs = read_pairs(store, plan, step=5)
    """
    cell, rows = plan.batch(step)
    return cell, store.read(rows)


class BatchSource:
    """A Grain random-access source whose element is a whole batch.

    Element `i` is the batch of step `start_step + i`; its rows are read
    together, ten times as fast as one by one.

    Args:
        store: Where the pairs are.
        plan: Which rows make which batch.
        start_step: Step of the first element.
        num_steps: Number of elements. Defaults to endlessly many.
        transforms: What is done to each batch, in this order.

    Example:
    >>> inputs, labels = BatchSource(store, plan)[0]
    """

    def __init__(
        self,
        store: PairStore,
        plan: BatchPlan,
        start_step: int = 0,
        num_steps: int | None = None,
        transforms: Sequence[BatchTransform] = (),
    ):
        self.store = store
        self.plan = plan
        self.start_step = start_step
        self.transforms = tuple(transforms)
        self.num_steps = _ENDLESS if num_steps is None else num_steps

    def __len__(self) -> int:
        return self.num_steps

    def __getitem__(self, index: int):
        step = self.start_step + int(index)
        cell, pairs = read_pairs(self.store, self.plan, step)
        for transform in self.transforms:
            pairs = transform.change_pairs(pairs, cell, step)
        inputs, labels = make_batch(cell, pairs)
        for transform in self.transforms:
            inputs = transform.change_inputs(inputs, step)
        return inputs, labels


def grain_batches(
    store: PairStore,
    plan: BatchPlan,
    start_step: int = 0,
    num_steps: int | None = None,
    num_threads: int = 4,
    prefetch_batches: int = 16,
    transforms: Sequence[BatchTransform] = (),
) -> "grain.IterDataset":
    """Reads the batches of a plan ahead of their use.

    Args:
        store: Where the pairs are.
        plan: Which rows make which batch.
        start_step: Step of the first batch; the rest of training follows as
            if it had never stopped.
        num_steps: Number of batches. Defaults to endlessly many.
        num_threads: Threads that read.
        prefetch_batches: Batches read ahead.
        transforms: What is done to each batch, in this order.

    Returns:
        A Grain dataset; each element is what `make_batch` returns.

    Example:
    >>> for inputs, labels in grain_batches(store, plan, num_steps=10):
    ...     pass
    """
    # Imported here because Grain imports JAX, which takes a while.
    import grain.python as grain

    source = BatchSource(store, plan, start_step, num_steps, transforms)
    return grain.MapDataset.source(source).to_iter_dataset(
        grain.ReadOptions(
            num_threads=num_threads, prefetch_buffer_size=prefetch_batches
        )
    )
