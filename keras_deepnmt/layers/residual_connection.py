"""Residual connection with normalization before or after the sub-layer."""

import keras

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_positive,
    check_probability,
)
from keras_deepnmt.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ResidualConnection(keras.layers.Layer):
    """Adds a sub-layer's output to its input and applies layer normalization.

    It is called before and after the sub-layer, so that the caller keeps the
    arguments and caches of the sub-layer itself:

        x = residual.before(inputs)
        output = residual(inputs, sublayer(x))

    Post-norm (Vaswani et al., 2017, Section 3.1): `before(x) = x` and
    `output = LN(x + dropout(y))`. Pre-norm (`normalize_first=True`; Wang et
    al., 2019): `before(x) = LN(x)` and `output = x + dropout(y)`.
    Differs from the paper: nothing.
    Cost: `2 D` parameters.

    Args:
        dropout: float in [0, 1). Dropout probability on the sub-layer's output.
            Defaults to `0.1`.
        layer_norm_epsilon: float. Added to the variance.
        normalize_first: bool. Whether to use pre-norm instead of post-norm.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, the sub-layer's input.
        outputs: float tensor `(B, T, D)`, the sub-layer's output; without it
            the call returns what `before` does, in pre-norm.
        training: bool. Whether dropout is active.

    Returns:
        Float tensor `(B, T, D)`.

    Raises:
        ValueError: if `dropout` is outside [0, 1); in post-norm, at call
            without `outputs`.

    Masking: passes the inputs' mask through; positions are independent.

    Example:
    >>> residual = keras_deepnmt.layers.ResidualConnection(normalize_first=True)
    >>> sublayer = keras_deepnmt.layers.FeedForward(11)
    >>> inputs = np.ones((3, 5, 7), "float32")
    >>> residual(inputs, sublayer(residual.before(inputs))).shape
    TensorShape([3, 5, 7])

    Reference:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), Section 3.1.
        - [Wang et al., 2019](https://arxiv.org/abs/1906.01787), Section 2.
    """

    # Slots of a model that the layer fits: a recipe may name it there.
    slots = ("residual_connection",)

    def __init__(
        self,
        dropout=0.1,
        layer_norm_epsilon=1e-6,
        normalize_first=False,
        **kwargs,
    ):
        check_probability("dropout", dropout)
        check_positive("layer_norm_epsilon", layer_norm_epsilon)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.normalize_first = normalize_first

    def build(self, inputs_shape, outputs_shape=None):
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon,
            name="layer_norm",
            dtype=self.dtype_policy,
        )
        self.layer_norm.build(inputs_shape)
        self.dropout_layer = Dropout(
            self.dropout, name="dropout", dtype=self.dtype_policy
        )

    def before(self, inputs):
        """Computes the input of the sub-layer.

        Args:
            inputs: float tensor `(B, T, D)`.

        Returns:
            Float tensor `(B, T, D)`: the normalized inputs in pre-norm,
            otherwise `inputs`.
        """
        if not self.normalize_first:
            return inputs
        if isinstance(inputs, keras.KerasTensor):
            # As a layer of the functional model the norm would be saved twice.
            return self(inputs)
        if not self.built:
            self.build(tuple(inputs.shape))
        return self.layer_norm(inputs)

    def call(self, inputs, outputs=None, training=None):
        if outputs is None:
            if not self.normalize_first:
                raise ValueError(
                    "`outputs` must be the output of the sub-layer, unless "
                    "normalize_first=True. Received: outputs=None."
                )
            return self.layer_norm(inputs)
        check_alike("outputs", [outputs], "inputs", inputs, num_axes=3)
        total = inputs + self.dropout_layer(outputs, training=training)
        return total if self.normalize_first else self.layer_norm(total)

    def compute_output_shape(self, inputs_shape, outputs_shape=None):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "normalize_first": self.normalize_first,
        }
