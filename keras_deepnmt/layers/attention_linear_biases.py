"""Attention with linear biases, ALiBi (Press et al., 2022, Section 3)."""

import math

import keras
import numpy as np
from keras import ops

from keras_deepnmt.layers.relative_position import RelativePosition


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class AttentionLinearBiases(RelativePosition):
    """Lowers attention in proportion to the distance of a key from a query.

    Each head has a fixed slope, and so its own reach. Nothing is learned, and
    a distance longer than any in training only continues the line. Pass it to
    a model as `position_encoding=`, or to an attention layer as
    `relative_position=`.

    For query t and key s, head n of N computes (Press et al., 2022, Section 3):

        logits[t, s] = q_t k_s / sqrt(H) - m_n |t - s|
        m_n = 2^(-8 n / N),  n = 1 ... N

    If N is no power of two, slopes come from the next smaller and the next
    larger power, as in the authors' code.
    Differs from the paper: it covers keys before the query alone; in an
    encoder, keys on both sides have the same slope.
    Cost: no parameters, O(N T S) time.

    Args:
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        queries: float tensor `(B, N, T, H)`.
        keys: float tensor `(B, N, S, H)`.
        values: float tensor `(B, N, S, H)`.

    Returns:
        Float tensor `(B, N, T, H)`: attention to all values. Attention layers
        call the methods `rotate`, `add_to_logits` and `add_to_context`.

    Masking: none; attention layers apply the masks.

    Example:
    >>> layer = keras_deepnmt.layers.AttentionLinearBiases()
    >>> queries = np.ones((1, 2, 3, 4), "float32")
    >>> layer(queries, queries, queries).shape
    TensorShape([1, 2, 3, 4])

    Reference:
        - [Press et al., 2022](https://arxiv.org/abs/2108.12409), Section 3.
    """

    slots = ("position_encoding",)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def add_to_logits(self, logits, queries, distances):
        slopes = np.array(_slopes(logits.shape[1]), "float32")[:, None, None]
        lengths = ops.cast(ops.abs(distances), "float32")  # (T, S)
        return logits - ops.multiply(slopes, ops.expand_dims(lengths, 0))


def _slopes(num_heads):
    """Returns the slope of each head."""
    fewer = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * n / fewer) for n in range(1, fewer + 1)]
    between = [2 ** (-4 * n / fewer) for n in range(1, 2 * fewer + 1, 2)]
    return slopes + between[: num_heads - fewer]
