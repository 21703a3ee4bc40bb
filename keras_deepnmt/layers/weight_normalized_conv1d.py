"""Convolution with weight normalization (Salimans and Kingma, 2016, Eq. 2)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_choice,
    check_integer,
    check_probability,
)
from keras_deepnmt.layers.convolution_padding import PADDINGS, padding_lengths
from keras_deepnmt.layers.weight_normalization import (
    add_normalized_kernel,
    normalize_weights,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class WeightNormalizedConv1D(keras.layers.Layer):
    """Applies a convolution over the positions, with weight normalization.

    Like `WeightNormalizedDense`, for `kernel_size` neighboring positions at
    once. Given inputs x of width D it computes, for output u of U (Salimans and
    Kingma, 2016, Eq. 2), from the concatenated neighbors:

        y_u = w_u [x_1; ...; x_k] + b_u,  w_u = g_u v_u / ||v_u||

    initialized with `v ~ N(0, 4 (1 - p) / (k D))`, `g_u = ||v_u||`: a gated
    linear unit after it, whose gates are half open at first, keeps the
    variance. Here `direction` is the paper's v, `gain` its g, `kernel_size` k.
    Differs from the paper: the initialization is that of Shen et al. (2018),
    with biases of zero, which they do not state.
    Cost: `k D U + 2 U` parameters, O(B T k D U) time; the kernel is normalized
    at each call, O(k D U).

    Args:
        filters: int. Width U of the output.
        kernel_size: int. Number of positions k that one output sees.
        padding: `"valid"` for none; `"same"` for k - 1 zeros in total, half on
            each side; `"causal"` for k - 1 zeros before the first position, so
            that no output sees a later input.
        use_bias: bool. Whether outputs have a bias.
        dropout: float in [0, 1). Dropout probability p that was applied to the
            inputs. Used only for the initialization.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`.

    Returns:
        Float tensor `(B, T, U)`; with `padding="valid"` `(B, T - k + 1, U)`.

    Raises:
        ValueError: for an unknown padding, a kernel size below 1, or `dropout`
            outside [0, 1).

    Masking: none. Set padded positions to zero before the call if real
    positions can see them.

    Example:
    >>> layer = keras_deepnmt.layers.WeightNormalizedConv1D(11, 3)
    >>> layer(np.zeros((3, 5, 7), "float32")).shape
    TensorShape([3, 3, 11])

    Reference:
        - [Salimans and Kingma, 2016](https://arxiv.org/abs/1602.07868).
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722). Released code:
          https://github.com/yanyao-shen/fairseq.
    """

    def __init__(
        self,
        filters,
        kernel_size,
        padding="valid",
        use_bias=True,
        dropout=0.0,
        **kwargs,
    ):
        check_integer("filters", filters)
        check_integer("kernel_size", kernel_size)
        check_choice("padding", padding, PADDINGS)
        check_probability("dropout", dropout)
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.padding = padding
        self.use_bias = use_bias
        self.dropout = dropout

    def build(self, inputs_shape):
        width = inputs_shape[-1]
        variance = 4.0 * (1.0 - self.dropout) / (self.kernel_size * width)
        self.direction, self.gain = add_normalized_kernel(
            self, (self.kernel_size, width, self.filters), variance**0.5
        )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.filters,), initializer="zeros"
            )

    @property
    def kernel(self):
        """The normalized kernel, a float32 tensor `(k, D, U)`."""
        return normalize_weights(self.direction, self.gain)

    def call(self, inputs):
        sides = padding_lengths(self.kernel_size, self.padding)
        output = ops.conv(
            ops.pad(inputs, ((0, 0), sides, (0, 0))),
            ops.cast(self.kernel, self.compute_dtype),
            padding="valid",
            data_format="channels_last",
        )
        return output + self.bias if self.use_bias else output

    def compute_output_shape(self, inputs_shape):
        length = inputs_shape[1]
        if length is not None and self.padding == "valid":
            length = length - self.kernel_size + 1
        return (inputs_shape[0], length, self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "padding": self.padding,
            "use_bias": self.use_bias,
            "dropout": self.dropout,
        }
