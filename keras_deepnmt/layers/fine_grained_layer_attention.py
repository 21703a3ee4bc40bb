"""Encoder states fused channel by channel (Liu et al., 2021)."""

import keras
from keras import ops

from keras_deepnmt.layers.dropout import Dropout

GRANULARITIES = ("fine", "scalar")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class FineGrainedLayerAttention(keras.layers.Layer):
    """Gives each decoder block its own mixture of all encoder states.

    A decoder that reads the encoder's top alone must do without what the
    lower states still hold: word forms, names, numbers. Here every decoder
    block weighs the states anew, and every channel on its own. The mixtures
    do not depend on the target and are computed once a sentence.

    Given states X^0 (embeddings without positions) to X^N, decoder block m
    reads (Liu et al., 2021, fine-grained layer attention):

        S^m = sum_n w^{m,n} * X^n
        w^{m,n,d} = exp(W^{m,n,d}) / sum_n' exp(W^{m,n',d})

    Here `num_decoder_layers` is the paper's M, `layer_weights` its w-hat,
    `layer_logits` its W, `drop_connect` its p: each entry of W is zeroed with
    that probability before the softmax, and the others are divided by 1 - p.
    Differs from the paper: nothing with the defaults. The released code also
    norms the embeddings (`embedding_norm`) and the mixtures (`output_norm`),
    with dropout after that.
    Cost: `M (N + 1) D` parameters, `M (N + 1)` with `"scalar"`, `2 D` a norm;
    O(M N B S D) time.

    Args:
        num_decoder_layers: int. Mixtures M, one for each decoder block.
        granularity: `"fine"` for a weight a channel, `"scalar"` for one a
            state (Bapna et al., 2018).
        drop_connect: float in [0, 1). Probability of zeroing an entry of W in
            training.
        masked_layers: ints. Numbers of states whose weight is set to zero, 0
            for the embeddings, to see what the decoder loses without them.
        renormalize: bool. Whether the others' weights then sum to one again;
            else they stay as they are.
        output_norm: bool. Whether the mixtures are normalised, by one norm.
        embedding_norm: bool. Whether X^0 is, to the scale of the others.
        dropout: float in [0, 1). On the mixtures, after their norm.
        layer_norm_epsilon: float. Added to the variance.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of N + 1 float tensors `(B, S, D)`, embeddings
            first.
        training: bool. Whether DropConnect and dropout are active.

    Returns:
        List of M float tensors `(B, S, D)`.

    Raises:
        ValueError: for an unknown granularity, a probability outside [0, 1),
            fewer than two states, states that differ in width, or masked
            layers that do not exist or are all there are (at build).

    Masking: position-wise, needs none.

    Example:
    >>> fusion = keras_deepnmt.layers.FineGrainedLayerAttention(2)
    >>> memories = fusion([np.zeros((3, 5, 8))] * 7)
    >>> len(memories), fusion.layer_weights().shape
    (2, TensorShape([2, 7, 8]))

    Reference:
        - [Liu et al., 2021](https://arxiv.org/abs/2012.14768).
        - [Bapna et al., 2018](https://arxiv.org/abs/1808.07561), "scalar".
    """

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
        if granularity not in GRANULARITIES:
            raise ValueError(
                f"`granularity` must be one of {GRANULARITIES}. "
                f"Received: granularity={granularity!r}."
            )
        for name, rate in (
            ("drop_connect", drop_connect),
            ("dropout", dropout),
        ):
            if not 0.0 <= rate < 1.0:
                raise ValueError(
                    f"`{name}` must lie in [0, 1). Received: {name}={rate}."
                )
        super().__init__(**kwargs)
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
            # A softmax of rounded logits would not be a float32 softmax.
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
        if self.embedding_norm:
            first = self.embedding_norm_layer(first)
        # Sums, not a product of stacked states: XLA makes one loop of them and
        # copies none. In two axes, as it is ten times slower backward in three.
        states = [
            ops.reshape(ops.cast(state, "float32"), (-1, self.hidden_dim))
            for state in (first, *others)
        ]
        weights = ops.unstack(
            ops.reshape(
                self._weights(training),
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
        """Gives what each decoder block takes of each state, per channel.

        Returns:
            Float32 tensor `(M, N + 1, D)`, without DropConnect; sums to 1 over
            axis 1, unless states are masked and not renormalised.
        """
        shape = (self.num_decoder_layers, self.num_states, self.hidden_dim)
        return ops.broadcast_to(self._weights(training=False), shape)

    def _weights(self, training):
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
        widths = [shape[-1] for shape in shapes]
        if len(widths) < 2 or len(set(widths)) != 1:
            raise ValueError(
                "`layer_states` must be at least two states of one width. "
                f"Received: widths={widths}."
            )
        last = len(widths) - 1
        wrong = [n for n in self.masked_layers if not 0 <= n <= last]
        if wrong or len(self.masked_layers) > last:
            raise ValueError(
                f"`masked_layers` must be numbers from 0 to {last}, and not "
                f"all of them. Received: masked_layers={self.masked_layers}."
            )

    def compute_output_shape(self, layer_states_shape):
        return [tuple(layer_states_shape[0])] * self.num_decoder_layers

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
