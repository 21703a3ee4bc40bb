"""Aggregation function of several states (Dou et al., 2018, Eq. 7)."""

import keras
from keras import ops

from keras_deepnmt.layers.aggregation_options import (
    NODE_OPTIONS,
    check_node_options,
)
from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_integer,
    check_mask,
    common_shape,
)
from keras_deepnmt.layers.cloning import (
    initializer_config,
    position_argument,
)
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.initial_kernels import make_dense
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.layers.recording import record
from keras_deepnmt.masks import merge_attention_masks


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class AggregationNode(keras.layers.Layer):
    """Merges the states of several layers into one state.

    The upper layers of a deep stack may lose information that lower layers
    had. A node transforms the states of several layers together and adds them
    to the result by residual connections. `LayerAggregation` and
    `MultiLayerAttention` are made of such nodes.

    For n inputs it computes (Dou et al., 2018, Eq. 7):

        AGG(x_1, ..., x_n) = LN(FF([x_1; ...; x_n]) + x_1 + ... + x_n)
        FF(z) = W_2 function(W_1 z + b_1) + b_2

    With `function="attention"` (Table 4) FF is multi-head self-attention
    over the positions of `W_in [x_1; ...; x_n]`. Eq. 7 adds all inputs
    (`residual="all"`); of the paper's alternatives, "top" adds one input only.
    Differs from the paper: FF's width, `4 D`, its dropout and `W_in` are not
    in the paper. Keys of the attention have no bias, and Q, K and V start with
    a tenth of Glorot's variance, as in `MultiHeadAttention`.
    Cost: `(n D F + F D) + (F + D) + 2 D` parameters, O(B S n D F) time; with
    `function="attention"` `n D^2` parameters and an attention instead of FF.

    Args:
        function: `"sigmoid"`, `"relu"`, or `"attention"`.
        residual: `"all"` to add all inputs, `"top"` to add one, or `"none"`.
        top_index: int. Index of the input that `residual="top"` adds: the state
            of the deepest layer. Otherwise ignored. Defaults to `0`.
        intermediate_dim: int. Width F of FF. Defaults to `4 D`. Ignored with
            `function="attention"`.
        num_heads: int. Number of attention heads; must divide D. Used only
            with `function="attention"`.
        dropout: float in [0, 1). Dropout probability on the output of FF.
        attention_dropout: float in [0, 1). Dropout probability on attention
            weights, with `function="attention"`.
        layer_norm_epsilon: float. Added to the variance.
        key_bias: bool. Whether key projections have a bias, with
            `function="attention"`.
        attention_initializer: Keras initializer of query, key and value
            projections with `function="attention"`; `None` for the one of
            `MultiHeadAttention`.
        relative_position: unbuilt layer of relative positions of the attention
            with `function="attention"`, as in `MultiHeadAttention`; or `None`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: list of n float tensors `(B, S, D)`; with a cache `(B*K, 1, D)`.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real. This and the next four arguments are
            used only with `function="attention"`.
        attention_mask: bool tensor that broadcasts to `(B, S, S)`, `True` =
            may attend. `None` allows all positions.
        use_causal_mask: bool. Whether position t attends only to s <= t.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Position of this decoding step.
        training: bool. Whether dropout is active.
        mask, inputs_mask: lists of masks like `padding_mask`, which Keras
            attaches to the inputs and passes itself.

    Returns:
        Float tensor `(B, S, D)`; then the new cache if one was passed.

    Raises:
        ValueError: if an option is not allowed; at build, if the inputs differ
            in width or `top_index` is not the index of an input; at call, if
            the number of inputs is not the one at build.

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    inputs, which is attached to the output too; the feed-forward functions need
    no mask.

    Example:
    >>> node = keras_deepnmt.layers.AggregationNode()
    >>> node([np.zeros((3, 5, 8)), np.ones((3, 5, 8))]).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Dou et al., 2018](https://arxiv.org/abs/1810.10181), Sections 3.1
          and 4 (Table 4).
    """

    def __init__(
        self,
        function="sigmoid",
        residual="all",
        top_index=0,
        intermediate_dim=None,
        num_heads=8,
        dropout=0.1,
        attention_dropout=0.0,
        layer_norm_epsilon=1e-6,
        key_bias=False,
        attention_initializer=None,
        relative_position=None,
        **kwargs,
    ):
        check_node_options(
            function,
            residual,
            intermediate_dim,
            num_heads,
            dropout,
            attention_dropout,
            layer_norm_epsilon,
        )
        check_integer("top_index", top_index, minimum=0)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.function = function
        self.residual = residual
        self.top_index = top_index
        self.intermediate_dim = intermediate_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.key_bias = key_bias
        self.attention_initializer = initializer_config(attention_initializer)
        self.relative_position, self.given_position = position_argument(
            relative_position
        )

    def build(self, inputs_shape):
        shape = common_shape("inputs", inputs_shape)
        num_inputs, width = len(inputs_shape), shape[-1]
        if self.residual == "top" and not 0 <= self.top_index < num_inputs:
            raise ValueError(
                "`top_index` must be the index of one of the inputs. Received: "
                f"top_index={self.top_index} and {num_inputs} inputs."
            )
        self.num_inputs = num_inputs
        if self.function == "attention":
            self.input_dense = self._make_dense("input", width, use_bias=False)
            self.attention = MultiHeadAttention(
                self.num_heads,
                attention_dropout=self.attention_dropout,
                key_bias=self.key_bias,
                kernel_initializer=self.attention_initializer,
                relative_position=self.given_position(),
                name="attention",
                dtype=self.dtype_policy,
            )
            self.attention.build(shape)
        else:
            inner = self.intermediate_dim or 4 * width
            self.input_dense = self._make_dense("input", inner, self.function)
            self.output_dense = self._make_dense("output", width)
            self.output_dense.build((*shape[:-1], inner))
        self.input_dense.build((*shape[:-1], num_inputs * width))
        self.dropout_layer = Dropout(
            self.dropout, name="dropout", dtype=self.dtype_policy
        )
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon,
            name="layer_norm",
            dtype=self.dtype_policy,
        )
        self.layer_norm.build(shape)

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        training=None,
        mask=None,
        inputs_mask=None,
    ):
        if len(inputs) != self.num_inputs:
            raise ValueError(
                f"`inputs` must be a list of {self.num_inputs} tensors, as at "
                f"build. Received: {len(inputs)} tensors."
            )
        check_alike("inputs", inputs[1:], "inputs", inputs[0])
        check_mask("padding_mask", padding_mask, inputs[0].shape[:2])
        padding_mask = first_mask(padding_mask, mask, inputs_mask)
        x = self.input_dense(ops.concatenate(inputs, axis=-1))  # (B, S, F)
        if self.function != "attention":
            x = self.output_dense(x)  # (B, S, D)
        elif cache is None:
            real = (
                None
                if padding_mask is None
                else ops.expand_dims(padding_mask, 1)
            )
            x = self.attention(
                x,
                attention_mask=merge_attention_masks(attention_mask, real),
                use_causal_mask=use_causal_mask,
                training=training,
            )
        else:
            x, cache = self.attention(
                x,
                attention_mask=attention_mask,
                cache=cache,
                cache_index=cache_index,
            )
        x = self.dropout_layer(x, training=training)
        for state in self._select_residuals(inputs):
            x = x + state
        output = self.layer_norm(x)  # Eq. 7
        record(self, "output", output)  # (B, S, D)
        return output if cache is None else (output, cache)

    @property
    def keeps_history(self):
        """Whether the hypotheses of a sentence can share its cache."""
        return self.function == "attention"

    def init_cache(self, batch_size, max_length, num_beams=1):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of sentences B.
            max_length: int or scalar tensor. Number of positions M.
            num_beams: int or scalar tensor. Number of hypotheses K of each
                sentence.

        Returns:
            Dict `{"key", "value"}` of the attention; an empty dict for the
            feed-forward functions, which use only the current position.
        """
        if self.function != "attention":
            return {}
        return self.attention.init_cache(batch_size, max_length, num_beams)

    def input_matrices(self):
        """Returns the first weight matrix, split into one part per input.

        Returns:
            List of one float tensor `(n, D, F)`: entry j is the matrix that
            multiplies input j. It is a list because layers with several nodes
            return one tensor per node.
        """
        kernel = self.input_dense.kernel
        width = kernel.shape[0] // self.num_inputs
        return [ops.reshape(kernel, (self.num_inputs, width, -1))]

    def _select_residuals(self, inputs):
        if self.residual == "top":
            return [inputs[self.top_index]]
        return inputs if self.residual == "all" else []

    def _make_dense(self, name, width, activation=None, use_bias=True):
        return make_dense(
            self, width, name, activation=activation, use_bias=use_bias
        )

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape[0])

    def compute_mask(self, inputs, previous_mask=None):
        return first_mask(previous_mask)

    def get_config(self):
        options = {name: getattr(self, name) for name in NODE_OPTIONS}
        return {
            **super().get_config(),
            **options,
            "top_index": self.top_index,
            "key_bias": self.key_bias,
        }
