"""One batch shared out over the replicas of a model."""

import math

import keras
import numpy as np


def num_replicas(model) -> int:
    """Counts the replicas a model was made for.

    Args:
        model: a model of this package, or anything with `variables`.

    Returns:
        The replicas of its `tf.distribute.Strategy`, the devices of its
        `keras.distribution`, or one.

    Example:
    >>> num_replicas(model)
    1
    """
    distribution = getattr(model, "distribution", None)
    if distribution is not None:
        return math.prod(distribution.device_mesh.shape)
    strategy = getattr(model, "distribute_strategy", None)
    return 1 if strategy is None else strategy.num_replicas_in_sync


def place_rows(distribution, function):
    """Puts the rows of batches on several devices, each a part (JAX).

    Args:
        distribution: a `keras.distribution.DataParallel`.
        function: compiled; takes arrays with leading axis B, returns a nest of
            such.

    Returns:
        Callable: takes NumPy arrays with equal leading axes, which need not
        divide by the number of devices, returns a nest of arrays.

    Example:
    >>> devices = keras.distribution.list_devices()
    >>> distribution = keras.distribution.DataParallel(devices=devices)
    >>> double = place_rows(distribution, lambda x: 2 * x)
    """
    parts = math.prod(distribution.device_mesh.shape)

    def placed(*arrays):
        rows = len(arrays[0])
        filled = [_filled(array, -rows % parts) for array in arrays]
        outputs = function(
            *(
                keras.distribution.distribute_tensor(
                    array, distribution.get_data_layout(array.shape)
                )
                for array in filled
            )
        )
        return keras.tree.map_structure(lambda values: values[:rows], outputs)

    return placed


def share_rows(strategy, function):
    """Runs a function of batches on all replicas, each on a part of the rows.

    Rows are independent of each other, so that the result is the same as on
    one device. On several machines every process must make the same calls, and
    each gets the whole result.

    Args:
        strategy: a `tf.distribute.Strategy`.
        function: takes tensors with leading axis B; returns a nest of such.

    Returns:
        Callable: takes NumPy arrays with equal leading axes, which need not
        divide by the number of replicas (rows of zeros are added and cut off
        again), returns a nest of tensors.

    Example:
    >>> import tensorflow as tf
    >>> double = share_rows(tf.distribute.get_strategy(), lambda x: 2 * x)
    >>> double(np.array([[3], [5]])).numpy().tolist()
    [[6], [10]]
    """
    import tensorflow as tf

    parts = strategy.num_replicas_in_sync

    @tf.function(autograph=False)
    def run(*shares):
        # Handed over itself, a compiled function would leave its device.
        outputs = strategy.run(lambda *rows: function(*rows), args=shares)
        return tf.nest.map_structure(
            lambda values: strategy.gather(values, axis=0), outputs
        )

    def shared(*arrays):
        rows = len(arrays[0])
        shares = [
            np.split(_filled(array, -rows % parts), parts) for array in arrays
        ]
        distributed = [
            strategy.experimental_distribute_values_from_function(
                lambda context, share=share: tf.convert_to_tensor(
                    share[context.replica_id_in_sync_group]
                )
            )
            for share in shares
        ]
        return tf.nest.map_structure(
            lambda values: values[:rows], run(*distributed)
        )

    return shared


def _filled(array, missing):
    return np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))
