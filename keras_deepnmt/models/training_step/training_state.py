"""What training changes besides the weights: update counts, random states."""

import keras


def update_count(model):
    """Counts the updates made, under any strategy.

    One that was skipped because float16 overflowed counts like the others.

    Args:
        model: a compiled model.

    Returns:
        The number of batches the optimizer has seen.

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


def seed_variables(model):
    """Lists the states of a model's random generators.

    Their paths carry a counter of the whole process, so order names them.

    Args:
        model: a built Keras model.

    Returns:
        List of variables that `model.variables` holds and `model.weights`
        does not.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> tuple(seed_variables(model)[0].shape)
    (2,)
    """
    weights = {id(weight) for weight in model.weights}
    return [v for v in model.variables if id(v) not in weights]
