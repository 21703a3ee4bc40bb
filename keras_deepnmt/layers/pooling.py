"""Pooling of the real positions of a sentence into one vector."""

from keras import ops


def pool_positions(inputs, padding_mask=None, how="mean"):
    """Computes the mean or maximum (`how`) over each sentence's real positions.

    The inputs `(B, S, D)` become `(B, 1, D)`, computed in float32. A sentence
    without real tokens gets zeros.
    """
    x = ops.cast(inputs, "float32")
    if padding_mask is None:
        real = ops.ones_like(x[..., :1], dtype="bool")
    else:
        real = ops.expand_dims(padding_mask, -1)  # (B, S, 1)
    count = ops.sum(ops.cast(real, "float32"), axis=1, keepdims=True)
    if how == "mean":
        total = ops.sum(ops.where(real, x, 0.0), axis=1, keepdims=True)
        pooled = total / ops.maximum(count, 1.0)
    else:
        largest = ops.max(ops.where(real, x, -1e9), axis=1, keepdims=True)
        pooled = ops.where(count > 0.0, largest, 0.0)
    return ops.cast(pooled, inputs.dtype)
