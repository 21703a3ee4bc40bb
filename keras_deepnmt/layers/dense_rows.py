"""Dense layers on all positions of a batch as one matrix."""

from keras import ops


def apply_to_rows(function, inputs):
    """Applies `Dense` layers to inputs `(B, T, D)` as a matrix `(B T, D)`.

    `function` takes and returns a matrix. The result is that of
    `function(inputs)`. XLA sums the gradient of a bias over
    one axis several times faster than over two, which is some 5 % of the
    training step of a small model on a CPU.

    Example:
    >>> dense = keras.layers.Dense(4)
    >>> apply_to_rows(dense, np.ones((2, 3, 5), "float32")).shape
    TensorShape([2, 3, 4])
    """
    rows = function(ops.reshape(inputs, (-1, inputs.shape[-1])))
    return ops.reshape(rows, (*ops.shape(inputs)[:-1], rows.shape[-1]))
