"""One vector for a sentence: the mean or maximum of its real positions."""

from keras import ops


def pool_positions(inputs, padding_mask=None, how="mean"):
    """Pools the real positions of each sentence.

    Args:
        inputs: float tensor `(B, S, D)`.
        padding_mask: bool tensor `(B, S)`, `True` = real token. Defaults to
            all real.
        how: `"mean"` or `"max"`.

    Returns:
        Float tensor `(B, 1, D)`, computed in float32; zeros for a sentence
        without a real token.

    Example:
    >>> x = np.array([[[1.0], [3.0], [8.0]]], "float32")
    >>> real = np.array([[True, True, False]])
    >>> [np.asarray(pool_positions(x, real, h)).item() for h in ("mean", "max")]
    [2.0, 3.0]
    """
    x = ops.cast(inputs, "float32")
    if padding_mask is None:
        real = ops.ones_like(x[..., :1], dtype="bool")
    else:
        real = padding_mask[..., None]  # (B, S, 1)
    count = ops.sum(ops.cast(real, "float32"), axis=1, keepdims=True)
    if how == "mean":
        total = ops.sum(ops.where(real, x, 0.0), axis=1, keepdims=True)
        pooled = total / ops.maximum(count, 1.0)
    else:
        largest = ops.max(ops.where(real, x, -1e9), axis=1, keepdims=True)
        pooled = ops.where(count > 0.0, largest, 0.0)
    return ops.cast(pooled, inputs.dtype)
