"""Distributes the rows of a batch over the replicas of a model."""

import math

import keras
import numpy as np


def num_replicas(model) -> int:
    """Returns the number of replicas that a model was made for.

    These are the replicas of its `tf.distribute.Strategy` or the devices of its
    `keras.distribution`; 1 without them.
    """
    distribution = getattr(model, "distribution", None)
    if distribution is not None:
        return math.prod(distribution.device_mesh.shape)
    strategy = getattr(model, "distribute_strategy", None)
    return 1 if strategy is None else strategy.num_replicas_in_sync


def shard_rows(distribution, function, whole=()):
    """Wraps a compiled function so that each device gets some rows (JAX).

    `distribution` is a `keras.distribution.DataParallel`. The function, and the
    wrapper, take arrays with leading axis B, and scalars and the arrays of the
    places `whole`, which all devices get. They return a nest of arrays with
    leading axis B. The number of rows need not be a multiple of the number of
    devices.
    """
    parts = math.prod(distribution.device_mesh.shape)

    def sharded_function(*arrays):
        rows = len(arrays[0])
        shares = []
        for place, array in enumerate(arrays):
            if _has_rows(place, array, whole):
                array = _pad_rows(array, -rows % parts)
                layout = distribution.get_data_layout(array.shape)
                array = keras.distribution.distribute_tensor(array, layout)
            shares.append(array)
        return keras.tree.map_structure(
            lambda values: values[:rows], function(*shares)
        )

    return sharded_function


def distribute_rows(strategy, function, whole=()):
    """Wraps a function so that each replica of a strategy gets some rows.

    The function, and the wrapper, take arrays with leading axis B, and scalars
    and the arrays of the places `whole`, which all replicas get. They return a
    nest of arrays with leading axis B. Rows are independent, so the result is
    that of one device. The number of rows need not be a multiple of the number
    of replicas: rows of zeros are added and removed. On several machines every
    process must make the same calls, and each gets the whole result.
    """
    import tensorflow as tf

    parts = strategy.num_replicas_in_sync

    @tf.function(autograph=False)
    def run(*shares):
        # `strategy.run` would call a compiled function on the wrong device.
        outputs = strategy.run(lambda *rows: function(*rows), args=shares)
        return tf.nest.map_structure(gather, outputs)

    def gather(values):
        # `strategy.gather` takes no bools.
        is_bool = strategy.experimental_local_results(values)[0].dtype.is_bool
        if is_bool:
            values = strategy.run(tf.cast, args=(values, tf.int32))
        gathered = strategy.gather(values, axis=0)
        return tf.cast(gathered, tf.bool) if is_bool else gathered

    def distributed_function(*arrays):
        rows = len(arrays[0])
        shares = [
            np.split(_pad_rows(array, -rows % parts), parts)
            if _has_rows(place, array, whole)
            else [array] * parts
            for place, array in enumerate(arrays)
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

    return distributed_function


def _has_rows(place, array, whole):
    return array.ndim > 0 and place not in whole


def _pad_rows(array, missing):
    return np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))
