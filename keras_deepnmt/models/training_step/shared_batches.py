"""Batches padded to a multiple of the devices, without tf.data."""

import inspect
import math

import keras
import numpy as np


def num_devices():
    """Counts the devices of the active `keras.distribution`; 1 without one.

    Example:
    >>> num_devices()
    1
    """
    distribution = keras.distribution.distribution()
    if distribution is None:
        return 1
    return math.prod(distribution.device_mesh.shape)


def fill_rows(batch, multiple):
    """Adds rows of padding up to a number of rows divisible by `multiple`.

    `batch` is a nest of arrays with equal leading axes; the result is the same
    nest of NumPy arrays.

    Example:
    >>> fill_rows({"source_ids": np.ones((5, 7))}, 4)["source_ids"].shape
    (8, 7)
    """

    def fill(array):
        array = np.asarray(array)
        missing = -len(array) % multiple
        return np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))

    return keras.tree.map_structure(fill, batch)


def listed_batches(batches):
    """Makes a dataset of a list of batches, which Keras would read as arrays.

    Another iterable of known length is wrapped too; a dataset or a generator is
    returned unchanged.
    """
    is_dataset = isinstance(batches, keras.utils.PyDataset)
    # `tf.data.Dataset` and Grain datasets have the method `map`.
    if is_dataset or hasattr(batches, "map") or not hasattr(batches, "__len__"):
        return batches
    return _ListedDataset(batches)


def filled_batches(batches, multiple):
    """Adds rows of padding to each batch of a dataset, for `keras.Model.fit`.

    `batches` is a Grain dataset, `tf.data.Dataset`, `keras.utils.PyDataset` or
    generator of `({"source_ids", "target_ids"}, labels)`. The number of rows
    of each batch becomes a multiple of `multiple`.

    Example:
    >>> ids = np.ones((5, 7))
    >>> batches = ((dict(source_ids=ids), ids) for _ in range(2))
    >>> [labels.shape for _, labels in filled_batches(batches, 4)]
    [(8, 7), (8, 7)]
    """
    if isinstance(batches, keras.utils.PyDataset):
        return _FilledDataset(batches, multiple)
    if inspect.isgenerator(batches):
        return (fill_rows(batch, multiple) for batch in batches)
    if hasattr(batches, "element_spec"):
        from keras_deepnmt.models.training_step.tensorflow_batches import (
            pad_rows,
        )

        return pad_rows(batches, multiple)
    return batches.map(lambda batch: fill_rows(batch, multiple))


class ArrayBatches(keras.utils.PyDataset):
    """Splits arrays into batches of equal size, the last one padded.

    The number of rows is `batch_size`, rounded up to a multiple of `multiple`.
    With `shuffle` the rows are in a new order in each epoch.
    """

    def __init__(self, inputs, labels, batch_size, multiple, shuffle=False):
        super().__init__()
        self._batch = dict(inputs), labels
        self._batch_size = batch_size
        self._multiple = batch_size + -batch_size % multiple
        self._order = np.arange(len(labels))
        self._generator = keras.random.SeedGenerator() if shuffle else None
        self.on_epoch_begin()

    def __len__(self):
        return -(-len(self._order) // self._batch_size)

    def __getitem__(self, number):
        start = number * self._batch_size
        rows = self._order[start : start + self._batch_size]
        batch = keras.tree.map_structure(
            lambda array: np.asarray(array)[rows], self._batch
        )
        return fill_rows(batch, self._multiple)

    def on_epoch_begin(self):
        if self._generator is not None:
            self._order = np.asarray(
                keras.random.shuffle(self._order, seed=self._generator)
            )


class _ListedDataset(keras.utils.PyDataset):
    """A `PyDataset` of a list of batches, or of another iterable."""

    def __init__(self, batches):
        super().__init__()
        self._batches = batches
        self._iterator = None

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, number):
        # Keras reads the batches of an epoch in their order.
        if number == 0:
            self._iterator = iter(self._batches)
        return next(self._iterator)


class _FilledDataset(keras.utils.PyDataset):
    """A `PyDataset` whose batches have rows of padding."""

    def __init__(self, dataset, multiple):
        super().__init__()
        self._dataset = dataset
        self._multiple = multiple

    def __len__(self):
        return len(self._dataset)

    def __getitem__(self, number):
        return fill_rows(self._dataset[number], self._multiple)

    def on_epoch_begin(self):
        self._dataset.on_epoch_begin()

    def on_epoch_end(self):
        self._dataset.on_epoch_end()
