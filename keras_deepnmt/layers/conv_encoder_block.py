"""Encoder block of convolutional models (Shen et al., 2018)."""

import keras

from keras_deepnmt.layers.argument_checks import (
    check_choice,
    check_integer,
    check_probability,
    check_states,
)
from keras_deepnmt.layers.gated_convolution import (
    GatedConvolution,
    concatenate_states,
)
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.recomputation import Block
from keras_deepnmt.layers.recording import record
from keras_deepnmt.layers.summary_layer import SummaryLayer

CONNECTIONS = ("residual", "dense", "summary")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ConvEncoderBlock(Block):
    """Applies a gated convolution and connects its output to earlier states.

    A stack of such blocks passes on a list of states, newest first. A
    *residual* block adds its output to the only state in the list. A *dense*
    block puts its output in front of the list, so that all later blocks read
    it directly and each block can be narrow. A *summary* block replaces all
    states of the list by one.

    Given states x^1, x^2, ... it computes (Shen et al., 2018, Eq. 5 and 6,
    Section 3.3), x = [x^1; x^2; ...]:

        y = GLU(convolution(dropout(x)))
        residual:  sqrt(1/2) (x + y)
        dense:     y, x^1, x^2, ...
        summary:   sqrt(1/2) (W x + b + y)

    Differs from the paper: a residual block whose width is not that of its
    input projects the input, as in the released code.
    Cost: `2 k D U + 4 U` parameters, plus `D U + 2 U` with a projection;
    O(B S k D U) time.

    Args:
        filters: int. Width U of the output.
        connection: `"residual"`, `"dense"` or `"summary"`.
        kernel_size: int. Number of positions k that one output sees.
        dropout: float in [0, 1). Dropout probability on the input of the
            convolution.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of float tensors `(B, S, D_i)`, newest first; D is
            the sum of their widths.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real.
        training: bool. Whether dropout is active.

    Returns:
        List of float tensors: the new state `(B, S, U)`, with `"dense"`
        followed by `layer_states`.

    Raises:
        ValueError: for an unknown connection, or as in `GatedConvolution`.

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    states, which is attached to the new states too; real positions do not
    depend on padding.

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
        check_integer("filters", filters)
        check_integer("kernel_size", kernel_size)
        check_choice("connection", connection, CONNECTIONS)
        check_probability("dropout", dropout)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.filters = filters
        self.connection = connection
        self.kernel_size = kernel_size
        self.dropout = dropout

    def build(self, layer_states_shape):
        check_states("layer_states", layer_states_shape)
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
            is_identity = (
                self.connection == "residual" and width == self.filters
            )
            self.summary = SummaryLayer(
                self.filters,
                use_projection=not is_identity,
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
            states = [*outputs, *layer_states]  # Eq. 6
        else:
            joined = concatenate_states(layer_states)
            states = [self.summary(joined, outputs)]
        record(self, "output", states[0])  # (B, S, D) or (B, T, D)
        return states

    def compute_output_shape(self, layer_states_shape):
        newest = (*layer_states_shape[0][:-1], self.filters)
        if self.connection == "dense":
            return [newest, *layer_states_shape]
        return [newest]

    def compute_mask(self, layer_states, previous_mask=None):
        num_states = len(layer_states) + 2 if self.connection == "dense" else 1
        return [first_mask(previous_mask)] * num_states

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "connection": self.connection,
            "kernel_size": self.kernel_size,
            "dropout": self.dropout,
        }
