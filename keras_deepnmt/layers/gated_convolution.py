"""Gated convolution over a sentence (Shen et al., 2018, Eq. 5)."""

import keras
from keras import ops

from keras_deepnmt.layers.convolution_padding import (
    check_convolution,
    padded_sides,
)
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.weight_normalization import check_dropout
from keras_deepnmt.layers.weight_normalized_conv1d import (
    WeightNormalizedConv1D,
)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class GatedConvolution(keras.layers.Layer):
    """Makes new features of each position from its neighbours.

    The layer of convolutional translators: half of a convolution's channels
    are features, the other half say how much of each passes. It serves the
    encoder, which sees both sides, and the decoder, which sees the past and
    may be run step by step.

    It computes (Shen et al., 2018, Eq. 5; Dauphin et al., 2017):

        [a; g] = convolution(dropout(x)),  output = a * sigmoid(g)

    Here `filters` is the width of the paper's h^l, `kernel_size` its 2 r + 1;
    weights are normalised.
    Differs from the paper: padding is zero before the convolution and after
    it, so that a sentence does not depend on its batch; the released code has
    batches of equal lengths.
    Cost: `2 k D U + 4 U` parameters, O(B T k D U) time. What it reads, side by
    side and dropped, is made anew in the backward pass, not stored: the memory
    of a dense stack grows with its states, not with all that is read of them.

    Args:
        filters: int. Width U of the output.
        kernel_size: int. Positions k that one output sees.
        padding: `"same"`, centred: (k - 1) / 2 neighbours on each side; or
            `"causal"`: the k - 1 positions before.
        dropout: float in [0, 1). Probability of dropping an activation of the
            input.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor `(B, T, D)`, or a list of `(B, T, D_i)` that lie
            side by side, D in all; with a cache `(B*K, 1, D)`.
        padding_mask: bool tensor `(B, T)`, `True` = real token. Defaults to
            all real.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Not needed: the cache is the past.
        training: bool. Whether dropout is active.

    Returns:
        Float tensor `(B, T, U)`; then the new cache iff one was passed.

    Raises:
        ValueError: for an unknown padding, a kernel size below 1, or `dropout`
            outside [0, 1).

    Masking: consumes `padding_mask`; padding gives zeros.

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
        check_convolution(kernel_size, padding, ("same", "causal"))
        check_dropout(dropout)
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.padding = padding
        self.dropout = dropout

    def build(self, inputs_shape):
        self.width = sum(shape[-1] for shape in _shapes(inputs_shape))
        self.dropout_layer = Dropout(
            self.dropout, name="dropout", dtype=self.dtype_policy
        )
        # Zeros are added here: step by step the past takes their place.
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
    ):
        parts = inputs if isinstance(inputs, list | tuple) else [inputs]
        real = None if padding_mask is None else padding_mask[..., None]
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
        # Drawn outside of what runs twice.
        key = self.dropout_layer.draw_key() if training else None

        def convolve(kernel, *parts):
            x = concatenate_states(parts)  # (B, T, D)
            x = self.dropout_layer.drop(x, key)
            if real is not None:
                x = ops.where(real, x, 0.0)
            sides = padded_sides(self.kernel_size, self.padding)
            x = ops.pad(x, ((0, 0), sides, (0, 0)))
            return ops.conv(x, kernel, data_format="channels_last")

        kernel = ops.cast(self.convolution.kernel, self.compute_dtype)
        if training:
            convolve = keras.remat(convolve)
        return convolve(kernel, *parts) + self.convolution.bias

    def init_cache(self, batch_size, max_length):
        """Makes the cache of a sentence's beginning.

        Args:
            batch_size: int or scalar tensor. Rows B*K.
            max_length: int or scalar tensor. Not needed.

        Returns:
            Dict of zeros `{"inputs"}`, the last k - 1 inputs `(B*K, k - 1,
            D)`; an empty one for a kernel of size 1, which sees no other.

        Raises:
            ValueError: if later positions are read.
        """
        if self.padding != "causal":
            raise ValueError(
                "Step by step, later positions cannot be read. Received: "
                f'padding={self.padding!r}. Pass padding="causal".'
            )
        if self.kernel_size == 1:
            return {}
        shape = (batch_size, self.kernel_size - 1, self.width)
        return {"inputs": ops.zeros(shape, dtype=self.compute_dtype)}

    def compute_output_shape(self, inputs_shape):
        return (*_shapes(inputs_shape)[0][:-1], self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "padding": self.padding,
            "dropout": self.dropout,
        }


def concatenate_states(layer_states):
    """Puts the states of a stack side by side.

    Args:
        layer_states: list of float tensors `(B, S, D_i)`.

    Returns:
        Float tensor `(B, S, D_1 + D_2 + ...)`.

    Example:
    >>> states = [np.zeros((3, 7, 11)), np.zeros((3, 7, 5))]
    >>> concatenate_states(states).shape
    TensorShape([3, 7, 16])
    """
    if len(layer_states) == 1:
        return layer_states[0]
    return ops.concatenate(layer_states, axis=-1)


def _shapes(inputs_shape):
    # A shape read from a file is a list, too.
    several = isinstance(inputs_shape[0], list | tuple)
    return inputs_shape if several else [inputs_shape]
