"""What TensorFlow's replicas share: batches, seeds and the update."""

import contextlib

import tensorflow as tf

from keras_deepnmt.models.training_step.training_state import seed_variables

# Odd, so that no two replicas' multiples of it meet (mod 2^32).
_STRIDE = 0x9E3779B9


def function_of_batches(model, step):
    """Makes what Keras' loop calls: one batch through all replicas.

    Keras' own takes the mean of what the replicas return, which fails with
    scalars where replicas are on several machines. Here the metrics are read
    where they are summed over all replicas.

    Args:
        model: a compiled model; its metrics are returned.
        step: method of the model that takes one replica's batch.

    Returns:
        Callable: takes an iterator over batches, returns a dict of the
        running metrics over all replicas.

    Raises:
        ValueError: if the model was compiled with `steps_per_execution` above
            one.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile("sgd")
    >>> ids = np.ones((2, 5), "int32")
    >>> batch = ({"source_ids": ids, "target_ids": ids}, ids)
    >>> run = function_of_batches(model, model.test_step)
    >>> float(run(iter([batch]))["tokens"])
    10.0
    """
    if model.steps_per_execution != 1:
        raise ValueError(
            "`steps_per_execution` must be 1 with several replicas. "
            f"Received: steps_per_execution={model.steps_per_execution}."
        )

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
        return on_batch(next(iterator))

    return run


def spread_seeds(model):
    """Moves each replica's seeds away from the first replica's.

    Under a strategy a seed is mirrored, and all replicas would drop the same
    activations. Replica r gets the first one's seed plus r times a constant;
    all count on alike, so saving the first replica's is enough.

    Args:
        model: a built Keras model whose replicas have equal seeds.

    Example:
    >>> spread_seeds(keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1))
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
    """Adds up the replicas' gradients and makes one update with the sum.

    Keras' optimizers clip the gradients of each replica and add them up
    afterwards; and look for overflows in each replica by itself. Here the sum
    comes first, so that clipping and loss scaling see the gradient of the
    global batch, as on one device.

    Args:
        optimizer: a built Keras optimizer.
        gradients: list of tensors, this replica's part of each gradient.
        variables: list of variables, of the same length.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile("sgd")
    >>> variables = model.trainable_variables
    >>> ones = [keras.ops.ones_like(variable) for variable in variables]
    >>> apply_sum_of_gradients(model.optimizer, ones, variables)
    """
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync > 1:
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    with _adding_up_nothing(optimizer):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    if hasattr(optimizer, "batch_count"):
        optimizer.batch_count.assign_add(1)


@contextlib.contextmanager
def _adding_up_nothing(optimizer):
    """Keeps Keras from adding up what is a sum already.

    There is no public way: the method is called unconditionally. Were it
    called no longer, replicas would differ from one device.
    """
    # Loss scaling wraps the optimizer that makes the update.
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    inner._all_reduce_sum_gradients = list
    try:
        yield
    finally:
        # Replicas are traced in turns: another one may have been here.
        vars(inner).pop("_all_reduce_sum_gradients", None)
