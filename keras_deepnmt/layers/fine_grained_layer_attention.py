"""Weighted sums of encoder states, per channel (Liu et al., 2021)."""

from numbers import Integral

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_choice,
    check_integer,
    check_positive,
    check_probability,
    common_shape,
)
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.keras_masks import first_mask

GRANULARITIES = ("fine", "scalar")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class FineGrainedLayerAttention(keras.layers.Layer):
    """Gives each decoder block its own weighted sum of all encoder states.

    A decoder that reads only the last encoder state has no direct access to
    what lower states represent, such as word forms, names and numbers. Here
    every decoder block learns its own weights of the encoder states, with
    separate weights for each channel. The weighted sums do not depend on the
    target: they are computed once per sentence.

    Given states X^0 (embeddings without positions) to X^N, decoder block m
    reads (Liu et al., 2021, fine-grained layer attention):

        S^m = sum_n w^{m,n} * X^n
        w^{m,n,d} = exp(W^{m,n,d}) / sum_n' exp(W^{m,n',d})

    Here `num_decoder_layers` is the paper's M, `layer_weights` its w-hat,
    `layer_logits` its W, `drop_connect` its p: each entry of W is zeroed with
    that probability before the softmax, and the others are divided by 1 - p.
    Differs from the paper: nothing with the defaults. In a model X^1 to X^(N-1)
    are outputs of blocks, even if an aggregation returns other states, and X^N
    is the output of the stack, after aggregation. The released code also
    normalizes the embeddings (`embedding_norm`) and the sums (`output_norm`),
    and then applies dropout to the sums.
    Cost: `M (N + 1) D` parameters, `M (N + 1)` with `"scalar"`, plus `2 D` per
    layer normalization; O(M N B S D) time.

    Args:
        num_decoder_layers: int. Number of sums M, one for each decoder block.
        granularity: `"fine"` for one weight per state and channel, `"scalar"`
            for one per state (Bapna et al., 2018).
        drop_connect: float in [0, 1). Probability of zeroing an entry of W in
            training.
        masked_layers: int or list of ints. Indices of states whose weight is
            set to zero, 0 for the embeddings, to measure their contribution.
        renormalize: bool. Whether the weights of the other states are rescaled
            to sum to one; otherwise they keep their values.
        output_norm: bool. Whether layer normalization is applied to the sums,
            with the same parameters for all M.
        embedding_norm: bool. Whether layer normalization is applied to X^0,
            which gives it the scale of the other states.
        dropout: float in [0, 1). Dropout probability on the sums, after
            `output_norm`.
        layer_norm_epsilon: float. Added to the variance.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of N + 1 float tensors `(B, S, D)`, embeddings
            first.
        training: bool. Whether DropConnect and dropout are active.

    Returns:
        List of M float tensors `(B, S, D)`.

    Raises:
        ValueError: for an unknown granularity or a probability outside [0, 1);
            at build, for fewer than two states, states that differ in width,
            or `masked_layers` that do not exist or include all states.

    Masking: positions are independent; the mask that Keras attaches to the
    states is attached to the outputs.

    Example:
    >>> fusion = keras_deepnmt.layers.FineGrainedLayerAttention(2)
    >>> memories = fusion([np.zeros((3, 5, 8))] * 7)
    >>> len(memories), fusion.layer_weights().shape
    (2, TensorShape([2, 7, 8]))

    Reference:
        - [Liu et al., 2021](https://arxiv.org/abs/2012.14768).
        - [Bapna et al., 2018](https://arxiv.org/abs/1808.07561), "scalar".
    """

    slots = ("encoder_fusion",)

    def __init__(
        self,
        num_decoder_layers,
        granularity="fine",
        drop_connect=0.3,
        masked_layers=(),
        renormalize=False,
        output_norm=False,
        embedding_norm=False,
        dropout=0.0,
        layer_norm_epsilon=1e-6,
        **kwargs,
    ):
        check_integer("num_decoder_layers", num_decoder_layers)
        check_choice("granularity", granularity, GRANULARITIES)
        check_probability("drop_connect", drop_connect)
        check_probability("dropout", dropout)
        check_positive("layer_norm_epsilon", layer_norm_epsilon)
        if isinstance(masked_layers, Integral):
            masked_layers = (int(masked_layers),)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_decoder_layers = num_decoder_layers
        self.granularity = granularity
        self.drop_connect = drop_connect
        self.masked_layers = sorted(set(masked_layers))
        self.renormalize = renormalize
        self.output_norm = output_norm
        self.embedding_norm = embedding_norm
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon

    def build(self, layer_states_shape):
        self._check_states(layer_states_shape)
        self.num_states = len(layer_states_shape)
        self.hidden_dim = layer_states_shape[0][-1]
        shape = (self.num_decoder_layers, self.num_states)
        limit = (2.0 / sum(shape)) ** 0.5  # as in the released code
        if self.granularity == "fine":
            shape = (*shape, self.hidden_dim)
        self.layer_logits = self.add_weight(
            name="layer_logits",
            shape=shape,
            initializer=keras.initializers.RandomUniform(-limit, limit),
            # Stays float32 under mixed precision, as the softmax does.
            autocast=False,
        )
        self.drop_connect_layer = Dropout(
            self.drop_connect, name="drop_connect", dtype="float32"
        )
        self.dropout_layer = Dropout(
            self.dropout, name="dropout", dtype=self.dtype_policy
        )
        for name in ("output_norm", "embedding_norm"):
            if getattr(self, name):
                norm = keras.layers.LayerNormalization(
                    epsilon=self.layer_norm_epsilon,
                    name=name,
                    dtype=self.dtype_policy,
                )
                norm.build(layer_states_shape[0])
                setattr(self, f"{name}_layer", norm)

    def call(self, layer_states, training=None):
        first, *others = layer_states
        check_alike("layer_states", others, "layer_states", first)
        if self.embedding_norm:
            first = self.embedding_norm_layer(first)
        # Sums instead of a matrix product with stacked states: XLA fuses them
        # into one loop without copies. Two axes, because the backward pass is
        # ten times slower with three.
        states = [
            ops.reshape(ops.cast(state, "float32"), (-1, self.hidden_dim))
            for state in (first, *others)
        ]
        weights = ops.unstack(
            ops.reshape(
                self._compute_weights(training),
                (self.num_decoder_layers * self.num_states, -1),
            ),
            num=self.num_decoder_layers * self.num_states,
        )
        memories = []
        for number in range(self.num_decoder_layers):
            rows = weights[number * self.num_states :]
            terms = [
                rows[n] * states[n]
                for n in range(self.num_states)
                if n not in self.masked_layers
            ]
            memory = sum(terms[1:], terms[0])  # S^m
            memory = ops.cast(memory, self.compute_dtype)
            memory = ops.reshape(memory, ops.shape(layer_states[0]))
            if self.output_norm:
                memory = self.output_norm_layer(memory)
            memories.append(self.dropout_layer(memory, training=training))
        return memories

    def layer_weights(self):
        """Returns each decoder block's weights of the states, per channel.

        Returns:
            Float32 tensor `(M, N + 1, D)`, without DropConnect; sums to 1 over
            axis 1, unless states are masked and `renormalize=False`.
        """
        shape = (self.num_decoder_layers, self.num_states, self.hidden_dim)
        return ops.broadcast_to(self._compute_weights(training=False), shape)

    def _compute_weights(self, training):
        shape = (self.num_decoder_layers, self.num_states, -1)
        logits = ops.reshape(ops.cast(self.layer_logits, "float32"), shape)
        logits = self.drop_connect_layer(logits, training=training)
        numbers = ops.arange(self.num_states)[None, :, None]
        kept = ops.ones_like(numbers, dtype="bool")
        for masked in self.masked_layers:
            kept = ops.logical_and(kept, ops.not_equal(numbers, masked))
        if self.renormalize:
            logits = ops.where(kept, logits, -1e9)
        weights = ops.softmax(logits, axis=1)  # (M, N + 1, D or 1)
        return ops.where(kept, weights, 0.0)

    def _check_states(self, shapes):
        common_shape("layer_states", shapes, minimum=2)
        last = len(shapes) - 1
        wrong = [n for n in self.masked_layers if not 0 <= n <= last]
        if wrong or len(self.masked_layers) > last:
            raise ValueError(
                f"`masked_layers` must be indices from 0 to {last}, but not "
                f"all of them. Received: masked_layers={self.masked_layers}."
            )

    def compute_output_shape(self, layer_states_shape):
        return [tuple(layer_states_shape[0])] * self.num_decoder_layers

    def compute_mask(self, layer_states, previous_mask=None):
        return [first_mask(previous_mask)] * self.num_decoder_layers

    def get_config(self):
        return {
            **super().get_config(),
            "num_decoder_layers": self.num_decoder_layers,
            "granularity": self.granularity,
            "drop_connect": self.drop_connect,
            "masked_layers": list(self.masked_layers),
            "renormalize": self.renormalize,
            "output_norm": self.output_norm,
            "embedding_norm": self.embedding_norm,
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }
