"""One update from the gradients of all replicas, on TensorFlow."""

import contextlib

import keras
import tensorflow as tf


def count_batches(optimizer):
    """Lets an optimizer that scales the loss count batches.

    It makes no update with a gradient that overflowed, nor does it count one;
    where training is, the batches say.

    Args:
        optimizer: a built Keras optimizer. Where it is a
            `LossScaleOptimizer` it gets a variable `batch_count`.

    Example:
    >>> optimizer = keras.optimizers.SGD()
    >>> optimizer.build([])
    >>> count_batches(optimizer)
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        optimizer.batch_count = optimizer.add_variable(
            (),
            initializer="zeros",
            dtype="int64",
            aggregation="only_first_replica",
            name="batch_count",
        )


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
