"""Projection with weight normalization (Salimans and Kingma, 2016, Eq. 2)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_integer,
    check_probability,
)
from keras_deepnmt.layers.weight_normalization import (
    add_normalized_kernel,
    normalize_weights,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class WeightNormalizedDense(keras.layers.Layer):
    """Applies a linear projection to each position, with weight normalization.

    Convolutional translation models have no layer normalization. Instead the
    weights of each output are a direction times a length, both of which are
    learned, and their initialization keeps the variance of the activations:
    training is then stable at large learning rates.

    Given an input x of width D it computes, for output u of U (Salimans and
    Kingma, 2016, Eq. 2):

        y_u = w_u x + b_u,  w_u = g_u v_u / ||v_u||

    initialized with `v ~ N(0, (1 - p) / D)`, `g_u = ||v_u||`, which needs no
    data. Here `direction` is the paper's v, `gain` its g, `dropout` p.
    Differs from the paper: the initialization is that of Shen et al. (2018),
    with biases of zero, which they do not state.
    Cost: `D U + 2 U` parameters; the kernel is normalized at each call, O(D U).

    Args:
        units: int. Width U of the output.
        use_bias: bool. Whether outputs have a bias.
        dropout: float in [0, 1). Dropout probability p that was applied to the
            inputs. The layer itself drops nothing: it only starts with smaller
            weights, because dropout scales up the activations it keeps.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(..., D)`.

    Returns:
        Float tensor `(..., U)`.

    Raises:
        ValueError: if `dropout` is outside [0, 1).

    Masking: passes the inputs' mask through; positions are independent.

    Example:
    >>> layer = keras_deepnmt.layers.WeightNormalizedDense(11)
    >>> layer(np.zeros((3, 5, 7), "float32")).shape
    TensorShape([3, 5, 11])

    Reference:
        - [Salimans and Kingma, 2016](https://arxiv.org/abs/1602.07868).
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722). Released code:
          https://github.com/yanyao-shen/fairseq.
    """

    def __init__(self, units, use_bias=True, dropout=0.0, **kwargs):
        check_integer("units", units)
        check_probability("dropout", dropout)
        super().__init__(**kwargs)
        self.units = units
        self.use_bias = use_bias
        self.dropout = dropout
        self.supports_masking = True

    def build(self, inputs_shape):
        width = inputs_shape[-1]
        self.direction, self.gain = add_normalized_kernel(
            self, (width, self.units), ((1.0 - self.dropout) / width) ** 0.5
        )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )

    @property
    def kernel(self):
        """The normalized kernel, a float32 tensor `(D, U)`."""
        return normalize_weights(self.direction, self.gain)

    def call(self, inputs):
        output = ops.matmul(inputs, ops.cast(self.kernel, self.compute_dtype))
        return output + self.bias if self.use_bias else output

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.units)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "use_bias": self.use_bias,
            "dropout": self.dropout,
        }
