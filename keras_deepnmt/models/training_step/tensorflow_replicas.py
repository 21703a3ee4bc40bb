"""One batch on the replicas of TensorFlow: the loop, seeds, and the update."""

import contextlib

import keras
import tensorflow as tf

from keras_deepnmt.models.training_step.training_state import seed_variables

# Odd, so that its multiples differ between replicas (mod 2^32).
_STRIDE = 0x9E3779B9


def function_of_batches(model, step):
    """Makes the function that Keras' loop calls: one batch on all replicas.

    Keras' own function averages the results of the replicas, which fails for
    scalars if the replicas are on several machines. This one reads the metrics
    outside the replicas, where they are sums over all of them.

    `step` is the method of the model that takes one replica's batch. The
    returned function takes an iterator over batches and returns a dict of the
    metrics so far.
    """

    def on_batch(data):
        model.distribute_strategy.run(step, args=(data,))
        return {metric.name: metric.result() for metric in model.metrics}

    def on_iterator(iterator):
        return on_batch(iterator.get_next())

    if not model.run_eagerly:
        on_batch, on_iterator = (
            tf.function(function, autograph=False, reduce_retracing=True)
            for function in (on_batch, on_iterator)
        )
    distributed = tf.data.Iterator, tf.distribute.DistributedIterator

    def run(iterator):
        if isinstance(iterator, distributed):
            return on_iterator(iterator)
        return on_batch(_rows_of_replicas(model, next(iterator)))

    return run


def function_of_shapes(model, step):
    """Makes the function that Keras' loop calls: one graph for each shape.

    In a graph for batches of any shape, operations that compute shapes part
    the clusters of autoclustering: they are twice as many, and each of them is
    compiled for each shape all the same.

    `step` is the method of the model that takes a batch. The returned function
    takes an iterator over batches and returns what `step` does. The model has
    one replica.
    """
    functions = {}

    def on_batch(data):
        return model.distribute_strategy.run(step, args=(data,))

    def run(iterator):
        data = next(iterator)
        # A batch may have no weights.
        given = [x for x in tf.nest.flatten(data) if x is not None]
        shapes = tuple(tuple(x.shape) for x in given)
        if shapes not in functions:
            # One function for all shapes would warn of every new one.
            functions[shapes] = tf.function(on_batch, autograph=False)
        return functions[shapes](data)

    return run


def _rows_of_replicas(model, batch):
    """Splits arrays of a global batch into equal parts, one per replica."""
    strategy = model.distribute_strategy
    inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(batch)
    count = strategy.num_replicas_in_sync

    def rows(context):
        replica = context.replica_id_in_sync_group
        return tf.nest.map_structure(
            lambda ids: tf.split(ids, count)[replica], (inputs, labels)
        )

    return strategy.experimental_distribute_values_from_function(rows)


def spread_seeds(model):
    """Makes the seeds of a built model differ between its replicas.

    Under a strategy a seed is mirrored, and all replicas would use the same
    dropout masks. The seed of replica r becomes the first replica's plus r
    times a constant. All advance equally, so saving the first replica's seeds
    is enough.
    """
    strategy = model.distribute_strategy
    seeds = seed_variables(model)

    @tf.function(autograph=False)
    def spread():
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int64)
        shift = tf.stack([replica * _STRIDE, 0])
        for seed in seeds:
            seed.assign(seed.value + tf.cast(shift, seed.dtype))

    if strategy.num_replicas_in_sync > 1:
        strategy.run(spread)


def apply_sum_of_gradients(optimizer, gradients, variables):
    """Sums the gradients of all replicas and makes one update with the sum.

    Keras' optimizers clip the gradients of each replica before the sum, and
    check each replica for overflows. Here the sum comes first, so that
    clipping and loss scaling apply to the gradient of the global batch, as on
    one device. `gradients` are this replica's, one per variable.
    """
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync > 1:
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    for gradient, variable in zip(gradients, variables, strict=True):
        # A function compiled for batches of any shape leaves the shape open,
        # and Muon needs it to know which side of a matrix is longer.
        gradient.set_shape(variable.shape)
    with _adding_up_nothing(optimizer):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    if hasattr(optimizer, "batch_count"):
        optimizer.batch_count.assign_add(1)


@contextlib.contextmanager
def _adding_up_nothing(optimizer):
    """Prevents Keras from summing gradients that are summed already.

    There is no public way: Keras always calls this method. A test checks that
    it exists, since otherwise replicas would differ from one device.
    """
    # Loss scaling wraps the optimizer that makes the update.
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    inner._all_reduce_sum_gradients = list
    try:
        yield
    finally:
        # Replicas are traced in turns: another one may have removed it.
        vars(inner).pop("_all_reduce_sum_gradients", None)
