"""Encoder block of convolutional translators (Shen et al., 2018)."""

import keras

from keras_deepnmt.layers.gated_convolution import (
    GatedConvolution,
    concatenate_states,
)
from keras_deepnmt.layers.summary_layer import SummaryLayer

CONNECTIONS = ("residual", "dense", "summary")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ConvEncoderBlock(keras.layers.Layer):
    """Adds what a gated convolution finds to the states below.

    A stack of such blocks hands on a list of states, the newest first. A
    *residual* block adds to the one state there is, and a word's way to the
    top leads through every block. A *dense* block lets the next ones read its
    output beside all others, and may be narrow. A *summary* replaces what has
    gathered by one state.

    Given states x^1, x^2, ... it computes (Shen et al., 2018, Eq. 5 and 6,
    Section 3.3), x = [x^1; x^2; ...]:

        y = GLU(convolution(dropout(x)))
        residual:  sqrt(1/2) (x + y)
        dense:     y, x^1, x^2, ...
        summary:   sqrt(1/2) (W x + b + y)

    Differs from the paper: a residual block of another width than its input
    projects it, as in the released code.
    Cost: `2 k D U + 4 U` parameters, a projection `D U + 2 U` more;
    O(B S k D U) time.

    Args:
        filters: int. Width U of the output.
        connection: `"residual"`, `"dense"` or `"summary"`.
        kernel_size: int. Positions k that one output sees.
        dropout: float in [0, 1). Probability of dropping an activation that
            the convolution reads.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of float tensors `(B, S, D_i)`, the newest first,
            D in all.
        padding_mask: bool tensor `(B, S)`, `True` = real token. Defaults to
            all real.
        training: bool. Whether dropout is active.

    Returns:
        List of float tensors: the new state `(B, S, U)`, and with `"dense"`
        all others after it.

    Raises:
        ValueError: for an unknown connection, or what `GatedConvolution`
            refuses.

    Masking: consumes `padding_mask`; no real position reads a padded one.

    Example:
    >>> block = keras_deepnmt.layers.ConvEncoderBlock(5, "dense")
    >>> states = block([np.zeros((3, 7, 11), "float32")])
    >>> [tuple(state.shape) for state in states]
    [(3, 7, 5), (3, 7, 11)]

    Reference:
        - [Shen et al., 2018](https://arxiv.org/abs/1806.00722), Section 3.
        - [Gehring et al., 2017](https://arxiv.org/abs/1705.03122).
    """

    PADDING = "same"

    def __init__(
        self,
        filters,
        connection="residual",
        kernel_size=3,
        dropout=0.0,
        **kwargs,
    ):
        if connection not in CONNECTIONS:
            raise ValueError(
                f"`connection` must be one of {', '.join(CONNECTIONS)}. "
                f"Received: connection={connection!r}."
            )
        super().__init__(**kwargs)
        self.filters = filters
        self.connection = connection
        self.kernel_size = kernel_size
        self.dropout = dropout

    def build(self, layer_states_shape):
        self.convolution = GatedConvolution(
            self.filters,
            self.kernel_size,
            self.PADDING,
            self.dropout,
            name="convolution",
            dtype=self.dtype_policy,
        )
        self.convolution.build(layer_states_shape)
        if self.connection != "dense":
            width = self.convolution.width
            same = self.connection == "residual" and width == self.filters
            self.summary = SummaryLayer(
                self.filters,
                use_projection=not same,
                name="summary",
                dtype=self.dtype_policy,
            )
            self.summary.build((*layer_states_shape[0][:-1], width))

    def call(self, layer_states, padding_mask=None, training=None):
        y = self.convolution(
            layer_states, padding_mask=padding_mask, training=training
        )
        return self._connect([y], layer_states)

    def _connect(self, outputs, layer_states):
        if self.connection == "dense":
            return [*outputs, *layer_states]  # Eq. 6
        return [self.summary(concatenate_states(layer_states), outputs)]

    def compute_output_shape(self, layer_states_shape):
        newest = (*layer_states_shape[0][:-1], self.filters)
        if self.connection == "dense":
            return [newest, *layer_states_shape]
        return [newest]

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "connection": self.connection,
            "kernel_size": self.kernel_size,
            "dropout": self.dropout,
        }
