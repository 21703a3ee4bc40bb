"""Weights as a direction and a length (Salimans and Kingma, 2016, Eq. 2)."""

import keras
from keras import ops

# Of a squared length: a direction of zeros gives a kernel of zeros.
SMALLEST_SQUARE = 1e-30


def lengths_of_outputs(kernel):
    """Measures the weights that lead to each output.

    Args:
        kernel: float tensor `(..., U)`.

    Returns:
        Float32 tensor `(U,)`, Euclidean norms over all axes but the last.

    Example:
    >>> kernel = np.array([[3.0, 0.0], [4.0, 2.0]])
    >>> np.asarray(lengths_of_outputs(kernel)).tolist()
    [5.0, 2.0]
    """
    squares = ops.square(ops.cast(kernel, "float32"))
    axes = tuple(range(len(kernel.shape) - 1))
    total = ops.sum(squares, axis=axes)
    return ops.sqrt(ops.maximum(total, SMALLEST_SQUARE))


def normalize_weights(direction, gain):
    """Gives the weights of each output the length asked for.

    Args:
        direction: float tensor `(..., U)`, the paper's v.
        gain: float tensor `(U,)`, lengths, the paper's g.

    Returns:
        Float32 tensor `(..., U)`: `g v / ||v||`, for each output (Eq. 2).

    Example:
    >>> kernel = normalize_weights(np.array([[3.0], [4.0]]), np.array([10.0]))
    >>> np.asarray(kernel).ravel().round(4).tolist()
    [6.0, 8.0]
    """
    scale = ops.cast(gain, "float32") / lengths_of_outputs(direction)
    return ops.cast(direction, "float32") * scale


def add_normalized_kernel(layer, shape, stddev):
    """Adds the two weights of a normalised kernel to a layer.

    Args:
        layer: `keras.layers.Layer` that is being built.
        shape: tuple of int `(..., U)`. The kernel's.
        stddev: float. Of the normal distribution that directions start from.

    Returns:
        Tuple of variables `(direction, gain)`. The gain starts as the
        direction's length: the first kernel is the direction itself.
    """
    direction = layer.add_weight(
        name="direction",
        shape=shape,
        initializer=keras.initializers.RandomNormal(stddev=stddev),
        # In half precision a length would lose digits.
        autocast=False,
    )

    def start(shape, dtype=None):
        return ops.cast(lengths_of_outputs(direction), dtype or "float32")

    gain = layer.add_weight(
        name="gain", shape=shape[-1:], initializer=start, autocast=False
    )
    return direction, gain


def check_dropout(dropout):
    """Refuses what is no probability of dropping an activation.

    Args:
        dropout: float.

    Raises:
        ValueError: if it is outside [0, 1).

    Example:
    >>> check_dropout(1.0)
    Traceback (most recent call last):
    ...
    ValueError: `dropout` must lie in [0, 1). Received: dropout=1.0.
    """
    if not 0.0 <= dropout < 1.0:
        raise ValueError(
            f"`dropout` must lie in [0, 1). Received: dropout={dropout}."
        )
