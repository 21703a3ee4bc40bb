"""Convolution with a gated linear unit (Shen et al., 2018, Eq. 5)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_choice,
    check_integer,
    check_mask,
    check_probability,
    check_states,
    list_of_shapes,
)
from keras_deepnmt.layers.convolution_padding import (
    padding_lengths,
)
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.weight_normalized_conv1d import (
    WeightNormalizedConv1D,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class GatedConvolution(keras.layers.Layer):
    """Applies a convolution over the positions and a gated linear unit (GLU).

    The main layer of convolutional translation models: half of the
    convolution's channels are features, and the other half are gates that
    decide how much of each feature passes. Use `padding="same"` in an encoder,
    which sees both sides, and `padding="causal"` in a decoder, which sees only
    earlier positions and can run incrementally.

    It computes (Shen et al., 2018, Eq. 5; Dauphin et al., 2017):

        [a; g] = convolution(dropout(x)),  output = a * sigmoid(g)

    Here `filters` is the width of the paper's h^l, `kernel_size` its 2 r + 1;
    the convolution is a `WeightNormalizedConv1D`.
    Differs from the paper: padded positions are set to zero before and after
    the convolution, so that a sentence does not depend on the other sentences
    of its batch; in the released code all sentences of a batch have the same
    length.
    Cost: `2 k D U + 4 U` parameters, O(B T k D U) time. The concatenated
    inputs after dropout are recomputed in the backward pass, not stored: a
    dense stack needs memory for its states, but not for copies of them.

    Args:
        filters: int. Width U of the output.
        kernel_size: int. Number of positions k that one output sees.
        padding: `"same"`: centered, (k - 1) / 2 positions on each side; or
            `"causal"`: the position itself and the k - 1 positions before it.
        dropout: float in [0, 1). Dropout probability on the input.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, or a list of `(B, T, D_i)` that are
            concatenated, D wide in total; with a cache `(B*K, 1, D)`.
        padding_mask: bool tensor `(B, T)`, `True` = real token. `None` means
            that all tokens are real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Ignored: the cache needs no position.
        training: bool. Whether dropout is active.
        mask: masks like `padding_mask`, which Keras attaches to the inputs and
            passes itself.

    Returns:
        Float tensor `(B, T, U)`; then the new cache if one was passed.

    Raises:
        ValueError: for an unknown padding, a kernel size below 1, or `dropout`
            outside [0, 1).

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    inputs, which is attached to the output too. The output is zero at padded
    positions.

    Example:
    >>> layer = keras_deepnmt.layers.GatedConvolution(11, padding="causal")
    >>> layer(np.zeros((3, 5, 7), "float32")).shape
    TensorShape([3, 5, 11])

    Reference:
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722), Section 3.
        - [Dauphin et al., 2017](https://arxiv.org/abs/1612.08083).
    """

    def __init__(
        self, filters, kernel_size=3, padding="same", dropout=0.0, **kwargs
    ):
        check_integer("filters", filters)
        check_integer("kernel_size", kernel_size)
        check_choice("padding", padding, ("same", "causal"))
        check_probability("dropout", dropout)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.filters = filters
        self.kernel_size = kernel_size
        self.padding = padding
        self.dropout = dropout

    def build(self, inputs_shape):
        shapes = list_of_shapes(inputs_shape)
        check_states("inputs", shapes)
        self.width = sum(shape[-1] for shape in shapes)
        self.dropout_layer = Dropout(
            self.dropout, name="dropout", dtype=self.dtype_policy
        )
        # Without padding: `call` adds the zeros, or the cached inputs.
        self.convolution = WeightNormalizedConv1D(
            2 * self.filters,
            self.kernel_size,
            dropout=self.dropout,
            name="convolution",
            dtype=self.dtype_policy,
        )
        self.convolution.build((None, None, self.width))

    def call(
        self,
        inputs,
        padding_mask=None,
        cache=None,
        cache_index=None,
        training=None,
        mask=None,
    ):
        parts = inputs if isinstance(inputs, list | tuple) else [inputs]
        check_alike("inputs", parts[1:], "inputs", parts[0])
        check_mask("padding_mask", padding_mask, parts[0].shape[:2])
        padding_mask = first_mask(padding_mask, mask)
        real = (
            None if padding_mask is None else ops.expand_dims(padding_mask, -1)
        )
        if cache is None:
            y = self._convolve(parts, real, training)
        else:
            x = concatenate_states(parts)
            if cache:
                x = ops.concatenate([cache["inputs"], x], axis=1)
                cache = {"inputs": x[:, 1 - self.kernel_size :]}
            y = self.convolution(x)  # (B*K, k, D) -> (B*K, 1, 2 U)
        features, gate = ops.split(y, 2, axis=-1)
        output = features * ops.sigmoid(gate)  # (B, T, U), Eq. 5
        if real is not None:
            output = ops.where(real, output, 0.0)
        return output if cache is None else (output, cache)

    def _convolve(self, parts, real, training):
        # Drawn here, because `convolve` runs again in the backward pass.
        key = self.dropout_layer.draw_key() if training else None

        def convolve(kernel, *parts):
            x = concatenate_states(parts)  # (B, T, D)
            x = self.dropout_layer.drop(x, key)
            if real is not None:
                x = ops.where(real, x, 0.0)
            sides = padding_lengths(self.kernel_size, self.padding)
            x = ops.pad(x, ((0, 0), sides, (0, 0)))
            return ops.conv(x, kernel, data_format="channels_last")

        kernel = ops.cast(self.convolution.kernel, self.compute_dtype)
        if training:
            convolve = keras.remat(convolve)
        return convolve(kernel, *parts) + self.convolution.bias

    def init_cache(self, batch_size, max_length):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of rows, B*K.
            max_length: int or scalar tensor. Ignored.

        Returns:
            Dict of zeros `{"inputs"}` for the last k - 1 inputs `(B*K, k - 1,
            D)`; an empty dict if `kernel_size` is 1.

        Raises:
            ValueError: if `padding` is not `"causal"`.
        """
        if self.padding != "causal":
            raise ValueError(
                '`padding` must be "causal" for incremental decoding, where '
                "later positions are not known yet. Received: "
                f'padding={self.padding!r}. Pass padding="causal".'
            )
        if self.kernel_size == 1:
            return {}
        shape = (batch_size, self.kernel_size - 1, self.width)
        return {"inputs": ops.zeros(shape, dtype=self.compute_dtype)}

    def compute_output_shape(self, inputs_shape):
        return (*list_of_shapes(inputs_shape)[0][:-1], self.filters)

    def compute_mask(self, inputs, previous_mask=None):
        return first_mask(previous_mask)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "padding": self.padding,
            "dropout": self.dropout,
        }


def concatenate_states(layer_states):
    """Concatenates states `(B, S, D_i)` along their last axis."""
    if len(layer_states) == 1:
        return layer_states[0]
    return ops.concatenate(layer_states, axis=-1)
