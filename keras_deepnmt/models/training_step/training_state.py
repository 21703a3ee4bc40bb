"""State of training besides the weights: update counts and random states."""

import keras


def update_count(model):
    """Returns the number of updates that a compiled model has made.

    Updates that were skipped because of a float16 overflow are included.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile("adam")
    >>> update_count(model)
    0
    """
    optimizer = model.optimizer
    count = getattr(optimizer, "batch_count", optimizer.iterations)
    # `int` cannot read a variable that is mirrored over replicas.
    return int(keras.ops.convert_to_numpy(count))


def count_batches(optimizer):
    """Adds a variable `batch_count` to a loss-scaling optimizer.

    Such an optimizer neither makes nor counts an update whose gradient
    overflows, but the position in the training data moves on. Other optimizers
    are not changed.

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


def seed_variables(model):
    """Lists the random states of a built model, which no weights file holds.

    They are identified by their order, since their paths contain a counter of
    the whole process.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> tuple(seed_variables(model)[0].shape)
    (2,)
    """
    weights = {id(weight) for weight in model.weights}
    return [v for v in model.variables if id(v) not in weights]
