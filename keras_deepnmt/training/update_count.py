"""How far a model's training is."""

import keras


def update_count(model: keras.Model) -> int:
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
