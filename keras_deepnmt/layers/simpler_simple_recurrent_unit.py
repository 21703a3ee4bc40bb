"""Simpler simple recurrent unit, SSRU (Kim et al., 2019, Section 3)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import check_sequence
from keras_deepnmt.layers.decoder_recurrence import DecoderRecurrence
from keras_deepnmt.layers.initial_kernels import make_dense


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class SimplerSimpleRecurrentUnit(DecoderRecurrence):
    """Replaces a decoder's self-attention by a light recurrent unit.

    Its state is a mixture of the last state and the new input, channel by
    channel, so that a decoding step has one cost, wherever it is, and the
    cache of a hypothesis is one vector. All matrix products are outside the
    recurrence.

    For inputs `x_1 ... x_T` it computes (Kim et al., 2019, Section 3):

        f_t = sigmoid(W_f x_t + b_f)
        c_t = f_t * c_(t-1) + (1 - f_t) * W x_t
        output_t = relu(c_t)

    with `c_0 = 0`. The residual connection and the norm after it are those of
    the block.
    Differs from the paper: nothing.
    Cost: `2 D^2 + D` weights, O(B D^2) time a step; all positions at once in
    about log2(T) passes over them.

    Args:
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        use_causal_mask: bool. Must be `True`: a position never sees later
            ones. Defaults to `True`.
        cache: dict from `init_cache`.
        cache_index: ignored: the state needs no position.
        training: ignored; there is no dropout.

    Returns:
        Float tensor like `query`; then the new cache if one was passed.

    Raises:
        ValueError: if `use_causal_mask` is `False`.

    Masking: causal; passes the mask of `query` through. Padding must come
    after the tokens.

    Example:
    >>> layer = keras_deepnmt.layers.SimplerSimpleRecurrentUnit()
    >>> layer(np.zeros((3, 5, 8), "float32")).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Kim et al., 2019](https://aclanthology.org/D19-5632), Section 3.
    """

    slots = ("decoder_self_attention",)

    def build(self, query_shape):
        check_sequence("query", query_shape)
        self.width = query_shape[-1]
        self.forget_gate = self._make_dense("forget_gate", "sigmoid")
        self.candidate = self._make_dense("candidate", None)
        for dense in (self.forget_gate, self.candidate):
            dense.build(query_shape)

    def call(
        self,
        query,
        use_causal_mask=True,
        cache=None,
        cache_index=None,
        training=None,
    ):
        self.check_causal(use_causal_mask)
        # Products of many gates need more than half precision.
        forget = ops.cast(self.forget_gate(query), "float32")
        candidate = ops.cast(self.candidate(query), "float32")
        new = (1.0 - forget) * candidate
        if cache is None:
            states = _recurrence(forget, new)
        else:
            states = forget * cache["state"] + new
            cache = {"state": states}
        output = ops.cast(ops.relu(states), self.compute_dtype)
        return output if cache is None else (output, cache)

    def _make_dense(self, name, activation):
        return make_dense(
            self,
            self.width,
            name,
            activation=activation,
            use_bias=name == "forget_gate",
        )


def _recurrence(gates, inputs):
    """Computes `c_t = gates_t * c_(t-1) + inputs_t` for all positions.

    After a pass with distance n, `c_t` counts the last 2 n positions: the sum
    of n positions before it is added, times the product of the gates between.
    """
    length = inputs.shape[1]
    if length is not None:
        distance = 1
        while distance < length:
            gates, inputs = _pass(gates, inputs, _delay, distance)
            distance *= 2
        return inputs
    length = ops.shape(inputs)[1]
    _, _, states = ops.while_loop(
        lambda distance, *_: distance < length,
        lambda distance, gates, inputs: (
            2 * distance,
            *_pass(gates, inputs, _gather, distance),
        ),
        (ops.ones((), "int32"), gates, inputs),
        # More than an int32 length needs, as the distance doubles. XLA asks for
        # a number, to know the size of what is kept for the gradient.
        maximum_iterations=31,
    )
    return states


def _pass(gates, inputs, earlier, distance):
    return (
        gates * earlier(gates, distance),
        inputs + gates * earlier(inputs, distance),
    )


def _delay(x, distance):
    """Moves positions `(B, T, D)` by a distance; the first ones get zeros."""
    return ops.pad(x[:, :-distance], [[0, 0], [distance, 0], [0, 0]])


def _gather(x, distance):
    """As `_delay`, for a distance that is a tensor."""
    places = ops.arange(ops.shape(x)[1], dtype="int32") - distance
    moved = ops.take(x, ops.maximum(places, 0), axis=1)
    return ops.where(ops.expand_dims(places >= 0, 1), moved, 0.0)
