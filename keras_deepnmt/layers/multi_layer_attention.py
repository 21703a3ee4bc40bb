"""Self-attention to the states of several layers (Dou et al., 2018, Eq. 8)."""

import keras
from keras import ops

from keras_deepnmt.layers.aggregation_node import AggregationNode
from keras_deepnmt.layers.aggregation_options import (
    NODE_OPTIONS,
    check_node_options,
    node_options,
)
from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_integer,
    check_sequence,
    check_states,
)
from keras_deepnmt.layers.call_results import call_results
from keras_deepnmt.layers.cloning import (
    check_takes_positions,
    clone_prototype,
    initializer_config,
    position_argument,
    prototype_config,
)
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.masks import merge_attention_masks

# Name of the attention to the layer just below. It corresponds to the only
# attention of a block without this layer.
NEAREST_ATTENTION = "lower_1"


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class MultiLayerAttention(keras.layers.Layer):
    """Applies self-attention to the states of several lower layers.

    What one word needs to know about another may be represented in a lower
    layer than the last one. This layer has one attention for each of the k
    layers below its block, and merges their outputs in an `AggregationNode`.
    Use it in place of `MultiHeadAttention` for self-attention.

    Given the states `H^(l-1) ... H^(l-k)` below block l it computes
    (Dou et al., 2018, Eq. 8):

        C_i = ATT_i(query H^(l-1), keys and values H^(l-i)),  i = 1 ... k
        output = AGG(C_1, ..., C_k)

    Here `num_layers` is the paper's k; AGG is an `AggregationNode`. With k = 1
    it is a plain attention, without AGG.
    Differs from the paper: as `MultiHeadAttention` (key bias, initial Q, K, V).
    The paper does not say which blocks have it: in a model blocks 1 to k have
    one plain attention (`at_block`), since the embedding is not a layer. There
    `H^(l-1)` is the block's input, also after an aggregation; the lower states
    are outputs of blocks, with dense aggregation those before the sum of Eq. 4.
    Cost: k attentions and a node of k inputs: `4 k D^2 + (k + 1) D F` weights.

    Args:
        num_heads: int. Heads N of the default attention, and of a node with
            `function="attention"`; must divide D.
        num_layers: int. Number of layers k to attend to. Defaults to `2`.
        attention: unbuilt layer with the call arguments of
            `MultiHeadAttention`, which is cloned k times; or `None` for
            `MultiHeadAttention`.
        function, residual, intermediate_dim, dropout, layer_norm_epsilon: of
            the node, as in `AggregationNode`; `residual="top"` adds C_1.
        attention_dropout: of the default attention, and of a node with
            `function="attention"`.
        key_bias: of the default attention.
        attention_initializer: Keras initializer of the query, key and value
            projections; `None` for the one of `MultiHeadAttention`. A layer in
            `attention` that names an initializer keeps its own.
        relative_position: unbuilt layer of relative positions, which is cloned
            for each attention, that of the node included; or one that has
            weights, which they share; or `None`. A layer in
            `attention` that has one keeps its own.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: float tensor `(B, T, D)`; with a cache `(B*K, 1, D)`.
        layer_states: list of k tensors like `query`, newest first: the
            states `H^(l-1)` (the query itself) to `H^(l-k)`. Optional only
            for k = 1.
        attention_mask: bool tensor that broadcasts to `(B, T, T)`, `True` =
            may attend. `None` allows all positions.
        use_causal_mask: bool. Whether position t attends only to s <= t.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Position of this decoding step.
        return_attention_scores: bool. Whether to return the attention weights
            as well.
        training: bool. Whether dropout is active.
        mask, query_mask, layer_states_mask: bool tensors `(B, T)`, `True` =
            real token, which Keras attaches to the query and the states and
            passes itself.

    Returns:
        `output`, a float tensor like `query`; then the new cache if one was
        passed; then a list of k attention weights `(B, N, T, T)` if
        `return_attention_scores=True`.

    Raises:
        ValueError: if an option is not allowed, or if the number of layer
            states is not k.

    Masking: `attention_mask` and the mask that Keras attaches to `query` or a
    state apply to all attentions. The mask of `query` is attached to the
    output.

    Example:
    >>> attention = keras_deepnmt.layers.MultiLayerAttention(2, num_layers=2)
    >>> newest, lower = np.zeros((3, 5, 8)), np.ones((3, 5, 8))
    >>> attention(newest, [newest, lower]).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Dou et al., 2018](https://arxiv.org/abs/1810.10181), Section 3.1.
    """

    slots = ("encoder_self_attention", "decoder_self_attention")

    # Tells a block to pass the states of lower layers as `layer_states`.
    reads_layer_states = True

    def __init__(
        self,
        num_heads,
        num_layers=2,
        attention=None,
        function="sigmoid",
        residual="all",
        intermediate_dim=None,
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
        check_integer("num_layers", num_layers)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.attention = prototype_config(attention)
        self.function = function
        self.residual = residual
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.key_bias = key_bias
        self.attention_initializer = initializer_config(attention_initializer)
        self.relative_position, self.given_position = position_argument(
            relative_position
        )
        check_takes_positions(
            self.attention, "attention", self.relative_position
        )

    def at_block(self, number):
        """Returns the self-attention to use in a block of a stack.

        Args:
            number: int. Number of the block, from 1.

        Returns:
            This layer if there are at least k blocks below; otherwise one
            attention like its k, an unbuilt layer.
        """
        if number > self.num_layers:
            return self
        return self._make_attention("self_attention")

    def build(self, query_shape, layer_states_shape=None):
        check_sequence("query", query_shape)
        if layer_states_shape is not None:
            check_states("layer_states", layer_states_shape)
        self.attentions = []
        for number in range(1, self.num_layers + 1):
            attention = self._make_attention(f"lower_{number}")
            attention.build(query_shape)
            self.attentions.append(attention)
        if self.num_layers > 1:
            self.node = AggregationNode(
                **node_options(self),
                name="node",
                dtype=self.dtype_policy,
            )
            self.node.build([query_shape] * self.num_layers)

    def call(
        self,
        query,
        layer_states=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        return_attention_scores=False,
        training=None,
        mask=None,
        query_mask=None,
        layer_states_mask=None,
    ):
        real = first_mask(mask, query_mask, layer_states_mask)
        if cache is None and real is not None:
            attention_mask = merge_attention_masks(
                attention_mask, ops.expand_dims(real, 1)
            )
        options = {
            "attention_mask": attention_mask,
            "use_causal_mask": use_causal_mask,
            "cache_index": cache_index,
            "training": training,
        }
        layer_states = self._check_layer_states(query, layer_states)
        contexts, scores, updated = [], [], {}
        for attention, state in zip(self.attentions, layer_states, strict=True):
            context, *rest = _as_tuple(
                attention(
                    query,
                    state,
                    cache=None if cache is None else cache[attention.name],
                    return_attention_scores=return_attention_scores,
                    **options,
                )
            )
            if cache is not None:
                updated[attention.name] = rest.pop(0)
            contexts.append(context)  # (B, T, D), C_i of Eq. 8
            scores.extend(rest)
        if self.num_layers == 1:
            output = contexts[0]
        elif cache is None:
            output = self.node(contexts, **options)  # Eq. 8
        else:
            node_cache = cache.get("node", {})
            output, node_cache = self.node(
                contexts, cache=node_cache, **options
            )
            updated |= {"node": node_cache} if node_cache else {}
        return call_results(
            output,
            None if cache is None else updated,
            scores if return_attention_scores else None,
        )

    @property
    def keeps_history(self):
        """Whether the hypotheses of a sentence can share its cache."""
        return all(
            getattr(attention, "keeps_history", False)
            for attention in self.attentions
        )

    def init_cache(self, batch_size, max_length, num_beams=1):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of sentences B.
            max_length: int or scalar tensor. Number of positions M.
            num_beams: int or scalar tensor. Number of hypotheses K of each
                sentence.

        Returns:
            Dict of the caches of the attentions, `"lower_1"` to `"lower_k"`,
            and of the `"node"` if it uses attention.
        """
        beams = {"num_beams": num_beams} if self.keeps_history else {}
        cache = {
            attention.name: attention.init_cache(
                batch_size, max_length, **beams
            )
            for attention in self.attentions
        }
        if self.num_layers > 1 and self.function == "attention":
            cache["node"] = self.node.init_cache(
                batch_size, max_length, **beams
            )
        return cache

    def input_matrices(self):
        """Returns the node's first weight matrix, split by layer.

        Returns:
            List of one float tensor `(k, D, F)`; an empty list for k = 1.
        """
        return self.node.input_matrices() if self.num_layers > 1 else []

    def _check_layer_states(self, query, layer_states):
        if layer_states is None and self.num_layers == 1:
            return [query]
        if layer_states is None or len(layer_states) != self.num_layers:
            received = None if layer_states is None else len(layer_states)
            raise ValueError(
                "`layer_states` must hold the states of the "
                f"{self.num_layers} layers below, the query's first. "
                f"Received: num_layers={self.num_layers}, "
                f"number of layer_states={received}."
            )
        check_alike("layer_states", layer_states, "query", query)
        return layer_states

    def _make_attention(self, name):
        if self.attention is not None:
            return clone_prototype(
                self.attention,
                name,
                self.dtype_policy,
                attention_initializer=self.attention_initializer,
                relative_position=self.given_position(),
            )
        return MultiHeadAttention(
            self.num_heads,
            attention_dropout=self.attention_dropout,
            key_bias=self.key_bias,
            kernel_initializer=self.attention_initializer,
            relative_position=self.given_position(),
            name=name,
            dtype=self.dtype_policy,
        )

    def compute_output_shape(self, query_shape, layer_states_shape=None):
        return query_shape

    def compute_output_spec(
        self,
        query,
        layer_states=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        return_attention_scores=False,
        *args,
        **kwargs,
    ):
        output = keras.KerasTensor(query.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return call_results(output, cache)
        scores = []
        for attention in self.attentions:
            *_, weights = attention.compute_output_spec(
                query,
                query,  # a state has the shape of the query
                cache=None if cache is None else cache[attention.name],
                cache_index=cache_index,
                return_attention_scores=True,
            )
            scores.append(weights)
        return call_results(output, cache, scores)

    def get_config(self):
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in NODE_OPTIONS},
            "num_layers": self.num_layers,
            "attention": self.attention,
            "key_bias": self.key_bias,
        }


def _as_tuple(result):
    return result if isinstance(result, tuple) else (result,)
