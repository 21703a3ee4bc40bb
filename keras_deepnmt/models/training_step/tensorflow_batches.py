"""Batches of different shapes as a `tf.data.Dataset` of known length."""

import contextlib
import itertools

import keras
import numpy as np
import tensorflow as tf

from keras_deepnmt.models.training_step.keras_arguments import check_batch


def open_shape_dataset(batches, num_batches=None, aligned=False):
    """Wraps batches of different shapes as a `tf.data.Dataset`.

    Keras infers fixed dimensions from the first two batches of a generator or
    Grain dataset and fails at a batch of another length; and if the number of
    batches is unknown, it counts one update too many.

    `batches` are `({"source_ids", "target_ids"}, labels)`, each a `(B, S)` or
    `(B, T)` int array. Without `num_batches` they are infinitely many, and
    `fit` needs `steps_per_epoch`. If `aligned`, the inputs have `alignments`,
    uint8 `(B, T, S)`.
    """
    ids = tf.TensorSpec((None, None), tf.int32)
    inputs = {"source_ids": ids, "target_ids": ids}
    if aligned:
        inputs["alignments"] = tf.TensorSpec((None, None, None), tf.uint8)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=(inputs, ids)
    )
    if num_batches is None:
        num_batches = tf.data.INFINITE_CARDINALITY
    else:
        dataset = dataset.take(num_batches)
    cardinality = tf.data.experimental.assert_cardinality(num_batches)
    return _without_autotuning(dataset.apply(cardinality).prefetch(2))


def array_dataset(inputs, labels, batch_size=32, shuffle=False):
    """Splits arrays into batches; the last one may have fewer rows.

    With `shuffle` the rows are in a new order in each epoch.
    """
    dataset = tf.data.Dataset.from_tensor_slices((dict(inputs), labels))
    if shuffle:
        dataset = dataset.shuffle(len(labels))
    return _without_autotuning(dataset.batch(batch_size))


def _without_autotuning(dataset):
    """Switches off the thread that tunes the buffers of a dataset.

    There is nothing to tune, and TensorFlow waits for this thread at the end of
    `fit` and of each validation. The thread sleeps longer and longer, and is
    sometimes not woken then.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def pad_rows(dataset, multiple):
    """Adds padding rows until `multiple` divides the rows of each batch.

    Otherwise the replicas would get batches of different shapes, and each
    shape is compiled. Padding does not change the loss.
    """
    if multiple == 1:
        return dataset
    # Replicas share rows, not files; otherwise TensorFlow first tries to share
    # files, and prints a message about it.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )

    def fill(ids):
        missing = -tf.shape(ids)[0] % multiple
        others = (ids.shape.rank or 2) - 1
        return tf.pad(ids, [[0, missing]] + [[0, 0]] * others)

    padded = dataset.map(lambda *batch: tf.nest.map_structure(fill, batch))
    return padded.with_options(options)


def countable_dataset(batches, steps_per_epoch=None, is_training=True):
    """Makes a dataset for `fit` with open shapes and a known cardinality.

    A `tf.data.Dataset` is returned unchanged; a Grain dataset or another
    iterable is wrapped. `steps_per_epoch` is the argument of `fit`. Raises a
    `ValueError` if a batch is not a pair, or if the number of batches is
    unknown without it; a `tf.data.Dataset` needs it only in training.
    """
    if isinstance(batches, tf.data.Dataset):
        check_batch(batches.element_spec)
        unknown = batches.cardinality() == tf.data.UNKNOWN_CARDINALITY
        if is_training and unknown and steps_per_epoch is None:
            raise ValueError(
                "`steps_per_epoch` is needed for a tf.data.Dataset of unknown "
                "cardinality: `fit` would count one update too many an epoch. "
                "Received: x of unknown cardinality. Pass it, or "
                "`x.apply(tf.data.experimental.assert_cardinality(n))`."
            )
        return batches
    kind = type(batches).__name__
    number = _number_of(batches)
    batches, aligned = _with_first_checked(batches, number)
    # With `steps_per_epoch` Keras reads on, and begins again at the end.
    if number is None and steps_per_epoch is None:
        raise ValueError(
            "`steps_per_epoch` of `fit`, `validation_steps` for its validation "
            "data or `steps` of `evaluate` is needed for batches whose number "
            f"is unknown. Received: x of type {kind}. Pass it, or a list."
        )
    if isinstance(batches, keras.utils.PyDataset):
        batches = _Passes(batches, number)
    return open_shape_dataset(batches, number, aligned)


def _number_of(batches):
    """The number of batches, or `None` if it is unknown or there is no end."""
    if isinstance(batches, keras.utils.PyDataset):
        with contextlib.suppress(NotImplementedError):
            return batches.num_batches
        return None
    return len(batches) if hasattr(batches, "__len__") else None


class _Passes:
    """Calls the methods of a `PyDataset` at the begin and end of each pass."""

    def __init__(self, batches, number):
        self._batches = batches
        self._number = number

    def __iter__(self):
        self._batches.on_epoch_begin()
        for count, batch in enumerate(self._batches, 1):
            # A copy, since the arrays may be shuffled while it waits.
            batch = keras.tree.map_structure(np.array, batch)
            # Nothing asks for more after the last batch.
            if count == self._number:
                self._batches.on_epoch_end()
            yield batch


def _with_first_checked(batches, number):
    """Checks the first batch before training, where it can be read alone.

    Returns the batches, and whether the first one has alignments.
    """
    if hasattr(batches, "__next__"):
        first = next(batches, None)
        if first is None:
            return batches, False
        check_batch(first)
        return itertools.chain([first], batches), "alignments" in first[0]
    if number and hasattr(batches, "__getitem__"):
        first = batches[0]
        check_batch(first)
        return batches, "alignments" in first[0]
    return batches, False
