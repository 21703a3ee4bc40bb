"""Encoder block of the Transformer (Vaswani et al., 2017, Section 3.1)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_integer,
    check_mask,
    check_positive,
    check_probability,
    check_sequence,
)
from keras_deepnmt.layers.cloning import (
    check_takes_positions,
    clone_prototype,
    initializer_config,
    position_argument,
    prototype_config,
    prototype_name,
    prototype_of,
)
from keras_deepnmt.layers.feed_forward import FeedForward
from keras_deepnmt.layers.initial_kernels import build_with_kernels
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.layers.recomputation import Block
from keras_deepnmt.layers.recording import record
from keras_deepnmt.layers.residual_connection import ResidualConnection


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class TransformerEncoderBlock(Block):
    """Applies self-attention, then a feed-forward network.

    It computes (Vaswani et al., 2017, Figure 1, left):

        c = residual(x, attention(x, x, x))
        y = residual(c, FFN(c))

    Differs from the paper: as `MultiHeadAttention` (key bias, initial Q, K, V);
    `self_attention` replaces the attention by another layer, and
    `residual_connection` what is around each sub-layer.
    Cost: `4 D^2 + 2 D F` weights.

    Args:
        num_heads: int. Number of attention heads N, except of a layer in
            `self_attention`.
        intermediate_dim: int. Width F of the feed-forward network.
        self_attention: unbuilt layer with the call arguments of
            `MultiHeadAttention`, which is cloned; or `None` for
            `MultiHeadAttention`. It keeps its own `num_heads`,
            `attention_dropout` and `key_bias`; those of the block are for
            `MultiHeadAttention`.
        dropout: float in [0, 1). Dropout probability on the output of each
            sub-layer.
        attention_dropout: float in [0, 1). Dropout probability on the
            attention weights, except of a layer in `self_attention`.
        activation: Keras activation of the feed-forward network.
        layer_norm_epsilon: float. Added to the variance.
        normalize_first: bool. Whether to use pre-norm instead of post-norm.
        key_bias: bool. Whether key projections have a bias, except those of a
            layer in `self_attention`.
        attention_initializer: Keras initializer of the query, key and value
            projections; `None` for the one of `MultiHeadAttention`. A layer in
            `self_attention` that names an initializer keeps its own. It has no
            effect if there is a `kernel_initializer`.
        relative_position: unbuilt layer of relative positions of the
            self-attention, as in `MultiHeadAttention`; or `None`. A layer in
            `self_attention` that has one keeps its own.
        residual_connection: unbuilt layer that joins the input and the output
            of each sub-layer, such as `DeepNorm`, which is cloned; or `None`
            for `ResidualConnection`. The `dropout`, `layer_norm_epsilon` and
            `normalize_first` of the block take the place of its own.
        kernel_initializer: Keras initializer of all kernels of the sub-layers,
            also of a layer in `self_attention`; `None` for their own. One with
            a seed gives kernels of one shape the same values. In a
            subclassed model it does not reach a layer in `self_attention` that
            is not made of layers of this package; the same is true of the
            initial kernels of `DeepNorm`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, S, D)`.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real.
        layer_states: list of `num_lower_states` float tensors `(B, S, D)`:
            the outputs of blocks further below, newest first. Needed only for a
            self-attention that reads them, such as `MultiLayerAttention`.
        training: bool. Whether dropout is active.
        mask: mask like `padding_mask`, which Keras attaches to the inputs and
            passes itself.

    Returns:
        Float tensor `(B, S, D)`.

    Raises:
        ValueError: for sizes or probabilities out of range, and for
            `normalize_first` with a `residual_connection` that always
            normalizes the sum.

    Masking: uses `padding_mask` and the mask that Keras attaches to the inputs,
    which is attached to the output too.

    Example:
    >>> block = keras_deepnmt.layers.TransformerEncoderBlock(2, 16)
    >>> block(np.zeros((3, 5, 8), "float32")).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), Section 3.1.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        self_attention=None,
        dropout=0.1,
        attention_dropout=0.0,
        activation="relu",
        layer_norm_epsilon=1e-6,
        normalize_first=False,
        key_bias=False,
        attention_initializer=None,
        relative_position=None,
        residual_connection=None,
        kernel_initializer=None,
        **kwargs,
    ):
        check_integer("num_heads", num_heads)
        check_integer("intermediate_dim", intermediate_dim)
        check_probability("dropout", dropout)
        check_probability("attention_dropout", attention_dropout)
        check_positive("layer_norm_epsilon", layer_norm_epsilon)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.self_attention = prototype_config(self_attention)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation = keras.activations.get(activation)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.normalize_first = normalize_first
        self.key_bias = key_bias
        self.attention_initializer = initializer_config(attention_initializer)
        self.relative_position, self.given_position = position_argument(
            relative_position
        )
        check_takes_positions(
            self.self_attention, "self_attention", self.relative_position
        )
        self.residual_connection = prototype_config(residual_connection)
        _check_takes_pre_norm(self.residual_connection, normalize_first)
        self.kernel_initializer = initializer_config(
            kernel_initializer, "kernel_initializer"
        )
        prototype = prototype_of(self.self_attention)
        reads_states = getattr(prototype, "reads_layer_states", False)
        self.num_lower_states = prototype.num_layers - 1 if reads_states else 0

    def build(self, inputs_shape):
        check_sequence("inputs", inputs_shape)
        self.attention = self._make_attention(
            "attention", self.self_attention, self.given_position()
        )
        self._build_part("attention", inputs_shape)
        self.feed_forward = FeedForward(
            self.intermediate_dim,
            activation=self.activation,
            name="feed_forward",
            dtype=self.dtype_policy,
        )
        self._build_part("feed_forward", inputs_shape)

    def call(
        self,
        inputs,
        padding_mask=None,
        layer_states=None,
        training=None,
        mask=None,
    ):
        check_mask("padding_mask", padding_mask, inputs.shape[:2])
        mask = first_mask(padding_mask, mask)
        if mask is not None:
            mask = ops.expand_dims(mask, 1)  # (B, 1, S)
        x = self._attend(
            inputs, layer_states, attention_mask=mask, training=training
        )
        x = self.attention_residual(inputs, x, training=training)
        y = self.feed_forward(self.feed_forward_residual.before(x))
        output = self.feed_forward_residual(x, y, training=training)
        record(self, "output", output)  # (B, S, D)
        return output

    def _attend(self, inputs, layer_states, **options):
        x = self.attention_residual.before(inputs)
        if self.num_lower_states:
            if layer_states is None:
                raise ValueError(
                    "`layer_states` must be a list of the outputs of "
                    f"{self.num_lower_states} blocks further below, newest "
                    "first: the self-attention reads them. "
                    "Received: layer_states=None."
                )
            lower = map(self.attention_residual.before, layer_states)
            options["layer_states"] = [x, *lower]
        return self.attention(x, **options)

    def _make_attention(self, name, prototype=None, relative_position=None):
        if prototype is not None:
            return clone_prototype(
                prototype,
                name,
                self.dtype_policy,
                attention_initializer=self.attention_initializer,
                relative_position=relative_position,
            )
        return MultiHeadAttention(
            self.num_heads,
            attention_dropout=self.attention_dropout,
            key_bias=self.key_bias,
            kernel_initializer=self.attention_initializer,
            relative_position=relative_position,
            name=name,
            dtype=self.dtype_policy,
        )

    def _make_residual(self, name):
        options = {
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "normalize_first": self.normalize_first,
        }
        if self.residual_connection is not None:
            return clone_prototype(
                self.residual_connection, name, self.dtype_policy, **options
            )
        return ResidualConnection(**options, name=name, dtype=self.dtype_policy)

    def _build_part(self, name, inputs_shape, *other_shapes):
        """Builds the sub-layer `name` and what is around it.

        The block's initializer draws its kernels, or else that of the residual
        connection.
        """
        residual = self._make_residual(f"{name}_residual")
        setattr(self, f"{name}_residual", residual)
        choose = getattr(residual, "initializer_of", None)
        if self.kernel_initializer is not None:
            choose = self._own_initializer
        build_with_kernels(
            getattr(self, name), choose, inputs_shape, *other_shapes
        )
        residual.build(inputs_shape)

    def _own_initializer(self, path):
        return keras.initializers.get(self.kernel_initializer)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "self_attention": self.self_attention,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": keras.activations.serialize(self.activation),
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "normalize_first": self.normalize_first,
            "key_bias": self.key_bias,
            "attention_initializer": self.attention_initializer,
            "relative_position": self.relative_position,
            "residual_connection": self.residual_connection,
            "kernel_initializer": self.kernel_initializer,
        }


def _check_takes_pre_norm(residual_connection, normalize_first):
    if not normalize_first or residual_connection is None:
        return
    if "normalize_first" not in prototype_of(residual_connection).get_config():
        raise ValueError(
            "`normalize_first` must be False with a `residual_connection` that "
            "has no such argument. Received: normalize_first=True with "
            f"{prototype_name(residual_connection)}. Leave one of them out."
        )
