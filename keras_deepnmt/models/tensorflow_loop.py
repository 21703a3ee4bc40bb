"""What `fit` and `evaluate` call for each batch, on TensorFlow."""

import tensorflow as tf


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
