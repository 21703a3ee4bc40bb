"""Average attention (Zhang et al., 2018, Eq. 1-2)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import check_integer, check_sequence
from keras_deepnmt.layers.decoder_recurrence import DecoderRecurrence
from keras_deepnmt.layers.feed_forward import FeedForward
from keras_deepnmt.layers.initial_kernels import make_dense
from keras_deepnmt.masks import relative_positions


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class AverageAttention(DecoderRecurrence):
    """Replaces a decoder's self-attention by the average of earlier inputs.

    Self-attention reads all earlier positions at each decoding step, which
    becomes slower with the length. An average can be updated: a step has one
    cost, wherever it is, and the cache of a hypothesis is one vector.

    For inputs `y_1 ... y_T` it computes (Zhang et al., 2018, Eq. 1-2):

        g_t = FFN((y_1 + ... + y_t) / t)
        [i_t; f_t] = sigmoid(W [y_t; g_t] + b)
        output_t = i_t * y_t + f_t * g_t

    Here `intermediate_dim` is the width of FFN. The residual connection and
    the norm after it (Eq. 3) are those of the block.
    Differs from the paper: nothing.
    Cost: `4 D^2 + 2 D F` weights, O(B D (D + F)) time a step.

    Args:
        intermediate_dim: int. Width F of the feed-forward network.
        activation: Keras activation of the feed-forward network.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        use_causal_mask: bool. Must be `True`: a position never sees later
            ones. Defaults to `True`.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Position of this decoding step.
        training: ignored; there is no dropout.

    Returns:
        Float tensor like `query`; then the new cache if one was passed.

    Raises:
        ValueError: if `use_causal_mask` is `False`.

    Masking: causal; passes the mask of `query` through. Padding must come
    after the tokens.

    Example:
    >>> layer = keras_deepnmt.layers.AverageAttention(intermediate_dim=11)
    >>> layer(np.zeros((3, 5, 8), "float32")).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Zhang et al., 2018](https://arxiv.org/abs/1805.00631), Section 3.
    """

    slots = ("decoder_self_attention",)

    def __init__(self, intermediate_dim, activation="relu", **kwargs):
        check_integer("intermediate_dim", intermediate_dim)
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)

    def build(self, query_shape):
        check_sequence("query", query_shape)
        self.width = query_shape[-1]
        self.feed_forward = FeedForward(
            self.intermediate_dim,
            activation=self.activation,
            name="feed_forward",
            dtype=self.dtype_policy,
        )
        self.feed_forward.build(query_shape)
        self.gates = make_dense(
            self, 2 * self.width, "gates", activation="sigmoid"
        )
        self.gates.build((*query_shape[:-1], 2 * self.width))

    def call(
        self,
        query,
        use_causal_mask=True,
        cache=None,
        cache_index=None,
        training=None,
    ):
        self.check_causal(use_causal_mask)
        query = ops.cast(query, self.compute_dtype)
        # Sums of half precision would lose what is small.
        inputs = ops.cast(query, "float32")
        if cache is None:
            is_past = relative_positions(ops.shape(query)[1]) <= 0
            weights = ops.cast(is_past, "float32")  # (T, T)
            weights = weights / ops.sum(weights, axis=1, keepdims=True)
            average = ops.einsum("ts,bsd->btd", weights, inputs)
        else:
            total = cache["state"] + inputs
            cache = {"state": total}
            average = total / (ops.cast(cache_index, "float32") + 1.0)
        average = ops.cast(average, self.compute_dtype)
        g = self.feed_forward(average)  # Eq. 1
        gates = self.gates(ops.concatenate([query, g], axis=-1))
        output = gates[..., : self.width] * query  # Eq. 2
        output = output + gates[..., self.width :] * g
        return output if cache is None else (output, cache)

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
        }
