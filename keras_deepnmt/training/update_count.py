"""How far a model's training is."""

import keras


def update_count(model: keras.Model) -> int:
    """Counts the updates made, under any strategy.

    Args:
        model: a compiled model.

    Returns:
        The optimizer's number of updates.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile("adam")
    >>> update_count(model)
    0
    """
    # `int` cannot read a variable that is mirrored over replicas.
    return int(keras.ops.convert_to_numpy(model.optimizer.iterations))
