"""Pads rows to batches and reads batches ahead of their use, with Grain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.batches.batch_transforms import BatchTransform
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.masks import BEGIN_ID, END_ID

if TYPE_CHECKING:
    import grain.python as grain

_ENDLESS = 2**40


def make_batch(
    batch_shape: BatchShape, pairs: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Pads pairs of ids to a batch shape and adds the special ids.

    Returns `({"source_ids", "target_ids"}, labels)`, int32 of shapes `(B, S)`,
    `(B, T)` and `(B, T)`; missing rows are all padding.
    """
    if len(pairs) > batch_shape.batch_size:
        raise ValueError(
            f"`pairs` must fit the batch shape. Received: {len(pairs)} pairs, "
            f"batch_shape={batch_shape}"
        )
    source_ids = np.zeros(
        (batch_shape.batch_size, batch_shape.source_length), "int32"
    )
    target_ids = np.zeros(
        (batch_shape.batch_size, batch_shape.target_length), "int32"
    )
    labels = np.zeros_like(target_ids)
    for row, (source, target) in enumerate(pairs):
        if (
            len(source) >= batch_shape.source_length
            or len(target) >= batch_shape.target_length
        ):
            raise ValueError(
                "Each pair with its special ids must fit the batch shape. "
                f"Received: {len(source)} and {len(target)} ids, "
                f"batch_shape={batch_shape}"
            )
        source_ids[row, : len(source)] = source
        source_ids[row, len(source)] = END_ID
        target_ids[row, 0] = BEGIN_ID
        target_ids[row, 1 : len(target) + 1] = target
        labels[row, : len(target)] = target
        labels[row, len(target)] = END_ID
    return {"source_ids": source_ids, "target_ids": target_ids}, labels


def read_pairs(
    store: PairStore, plan: BatchPlan, step: int
) -> tuple[BatchShape, list[tuple[np.ndarray, np.ndarray]]]:
    """Reads the batch shape and the pairs of a step, without special ids."""
    batch_shape, rows = plan.batch(step)
    return batch_shape, store.read(rows)


class BatchSource:
    """A Grain random-access source whose elements are whole batches.

    Element `i` is the batch of step `start_step + i`. Its rows are read
    together, which is ten times as fast as one by one. `num_steps=None` means
    no end; `transforms` are applied in order.
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
        batch_shape, pairs = read_pairs(self.store, self.plan, step)
        for transform in self.transforms:
            pairs = transform.change_pairs(pairs, batch_shape, step)
        inputs, labels = make_batch(batch_shape, pairs)
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
        store: The pairs.
        plan: The plan that tells which rows are in which batch.
        start_step: Step of the first batch; a resumed training reads the same
            batches as an uninterrupted one.
        num_steps: Number of batches. Defaults to no end.
        num_threads: Number of threads that read.
        prefetch_batches: Number of batches read ahead.
        transforms: Changes made to each batch, in this order.

    Returns:
        A Grain dataset of `({"source_ids", "target_ids"}, labels)`, int32 of
        shapes `(B, S)`, `(B, T)` and `(B, T)`.

    Example:
    >>> for inputs, labels in grain_batches(store, plan, num_steps=10):
    ...     pass
    """
    source = BatchSource(store, plan, start_step, num_steps, transforms)
    # Imported here because Grain imports JAX, which takes a while.
    import grain.python as grain

    return grain.MapDataset.source(source).to_iter_dataset(
        grain.ReadOptions(
            num_threads=num_threads, prefetch_buffer_size=prefetch_batches
        )
    )
