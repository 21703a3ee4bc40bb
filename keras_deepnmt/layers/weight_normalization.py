"""Weight normalization (Salimans and Kingma, 2016, Eq. 2)."""

import keras
from keras import ops

# Lower bound of a squared norm: a direction of zeros gives a kernel of zeros.
SMALLEST_SQUARE = 1e-30


def compute_output_norms(kernel):
    """Computes the Euclidean norm of the weights of each output.

    The kernel has shape `(..., U)`; the norms are a float32 tensor `(U,)`.
    """
    squares = ops.square(ops.cast(kernel, "float32"))
    axes = tuple(range(len(kernel.shape) - 1))
    total = ops.sum(squares, axis=axes)
    return ops.sqrt(ops.maximum(total, SMALLEST_SQUARE))


def normalize_weights(direction, gain):
    """Computes the kernel `g v / ||v||`, with one norm per output (Eq. 2).

    `direction` is the paper's v, of shape `(..., U)`, and `gain` its g, of
    shape `(U,)`. The kernel is float32.
    """
    scale = ops.cast(gain, "float32") / compute_output_norms(direction)
    return ops.cast(direction, "float32") * scale


def add_normalized_kernel(layer, shape, stddev):
    """Adds a normalized kernel's weights, direction and gain, to a layer.

    The direction is drawn from a normal distribution with standard deviation
    `stddev`. The gain is initialized with the norm of the direction: the
    initial kernel is the direction itself.
    """
    direction = layer.add_weight(
        name="direction",
        shape=shape,
        initializer=keras.initializers.RandomNormal(stddev=stddev),
        # Half precision is too coarse for the norm.
        autocast=False,
    )

    def initialize_gain(shape, dtype=None):
        return ops.cast(compute_output_norms(direction), dtype or "float32")

    gain = layer.add_weight(
        name="gain",
        shape=shape[-1:],
        initializer=initialize_gain,
        autocast=False,
    )
    return direction, gain
