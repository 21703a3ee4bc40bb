"""Batches of many shapes as a `tf.data.Dataset` that `fit` can count."""

import tensorflow as tf


def open_shape_dataset(batches, num_batches=None):
    """Wraps batches of different shapes as a `tf.data.Dataset`.

    Keras fixes the dimensions of generators and Grain datasets from their
    first two batches, and a batch of another length then fails; and with an
    unknown number of batches it counts one update too many.

    Args:
        batches: iterable of `({"source_ids", "target_ids"}, labels)`, each a
            `(B, S)` or `(B, T)` int array.
        num_batches: int. Number of batches, which the dataset then knows.
            Defaults to endlessly many; give `fit` a `steps_per_epoch` then.

    Returns:
        A `tf.data.Dataset` of open shapes and known cardinality.

    Example:
    >>> ids = np.ones((2, 5), "int32")
    >>> batch = ({"source_ids": ids, "target_ids": ids}, ids)
    >>> int(open_shape_dataset([batch] * 3, 3).cardinality())
    3
    """
    ids = tf.TensorSpec((None, None), tf.int32)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches),
        output_signature=({"source_ids": ids, "target_ids": ids}, ids),
    )
    if num_batches is None:
        num_batches = tf.data.INFINITE_CARDINALITY
    else:
        dataset = dataset.take(num_batches)
    cardinality = tf.data.experimental.assert_cardinality(num_batches)
    return dataset.apply(cardinality).prefetch(2)


def array_dataset(inputs, labels, batch_size=32, shuffle=False):
    """Cuts arrays into batches of one size.

    Args:
        inputs: dict `{"source_ids", "target_ids"}` of int arrays.
        labels: int array `(N, T)`.
        batch_size: int. Rows of a batch; the last one may have fewer.
        shuffle: bool. Whether the rows are in a new order each time.

    Returns:
        A `tf.data.Dataset` of known cardinality.

    Example:
    >>> ids = np.ones((5, 7), "int32")
    >>> inputs = {"source_ids": ids, "target_ids": ids}
    >>> dataset = array_dataset(inputs, ids, batch_size=3)
    >>> [batch[1].shape[0] for batch in dataset]
    [3, 2]
    """
    dataset = tf.data.Dataset.from_tensor_slices((dict(inputs), labels))
    if shuffle:
        dataset = dataset.shuffle(len(labels))
    return dataset.batch(batch_size)


def pad_rows(dataset, multiple):
    """Fills batches up with padding rows.

    A batch that does not divide by the replicas would give them different
    shapes, each of which is a compilation; padding counts nowhere.

    Args:
        dataset: `tf.data.Dataset` of `({"source_ids", "target_ids"}, labels)`.
        multiple: int. What the rows of each batch must divide by.

    Returns:
        A `tf.data.Dataset` of as many batches.

    Example:
    >>> ids = np.ones((5, 7), "int32")
    >>> inputs = {"source_ids": ids, "target_ids": ids}
    >>> dataset = pad_rows(array_dataset(inputs, ids), 4)
    >>> [batch[1].shape[0] for batch in dataset]
    [8]
    """
    if multiple == 1:
        return dataset
    # Rows, not files, are what replicas share; TensorFlow would look for files
    # first and tell of its search.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )

    def fill(ids):
        missing = -tf.shape(ids)[0] % multiple
        return tf.pad(ids, [[0, missing], [0, 0]])

    padded = dataset.map(lambda *batch: tf.nest.map_structure(fill, batch))
    return padded.with_options(options)


def countable_dataset(batches, steps_per_epoch=None):
    """Gives `fit` a dataset with open shapes and a known cardinality.

    Args:
        batches: `tf.data.Dataset`, which is returned as it is, Grain dataset,
            or other iterable of batches.
        steps_per_epoch: int. What `fit` was given.

    Returns:
        A `tf.data.Dataset`.

    Raises:
        ValueError: if the number of batches is unknown and no
            `steps_per_epoch` is given.

    Example:
    >>> ids = np.ones((2, 5), "int32")
    >>> batch = ({"source_ids": ids, "target_ids": ids}, ids)
    >>> int(countable_dataset([batch] * 3).cardinality())
    3
    """
    if isinstance(batches, tf.data.Dataset):
        return batches
    if steps_per_epoch is not None:
        return open_shape_dataset(batches)
    if not hasattr(batches, "__len__"):
        raise ValueError(
            "`steps_per_epoch` (or `validation_steps`) is needed for batches "
            "whose number is unknown: `fit` would count one update too many. "
            f"Received: x of type {type(batches).__name__}."
        )
    return open_shape_dataset(batches, len(batches))
