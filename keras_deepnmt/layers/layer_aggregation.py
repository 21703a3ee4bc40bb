"""Aggregation of the layers of a stack (Dou et al., 2018, Eq. 4-7)."""

import keras

from keras_deepnmt.layers.aggregation_node import AggregationNode
from keras_deepnmt.layers.aggregation_options import (
    NODE_OPTIONS,
    check_node_options,
    node_options,
)
from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_choice,
    check_integer,
    check_mask,
    common_shape,
)
from keras_deepnmt.layers.cloning import (
    initializer_config,
    position_argument,
)
from keras_deepnmt.layers.keras_masks import first_mask
from keras_deepnmt.layers.linear_combination import LinearCombination

STRATEGIES = ("dense", "linear", "iterative", "hierarchical")
LINEAR_MODES = ("matrices", "feed_forward")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LayerAggregation(keras.layers.Layer):
    """Combines the states of all layers of a stack into one state.

    A stack normally passes on the output of its last layer only, so that the
    next module cannot use what lower layers represent. Aggregation combines
    the outputs of all layers: directly ("dense", "linear"), or by a chain
    ("iterative") or a tree ("hierarchical") of `AggregationNode`s.

    Given block outputs H^1 ... H^L it computes (Dou et al., 2018, Section 3.1)

        dense:         A^l = H^l + A^1 + ... + A^(l-1)              (Eq. 4)
        linear:        A = W_1 H^1 + ... + W_L H^L                  (Eq. 5)
        iterative:     A^1 = H^1, A^l = AGG(H^l, A^(l-1))           (Eq. 6)
        hierarchical:  A_1 = AGG(H^1, H^2),
                       A_i = AGG(H^(2i-1), H^(2i), A_(i-1))

    and returns the last A. "dense" and "hierarchical" feed back into the
    stack: block l + 1 reads A^l, or A_i if l = 2i. For an odd number of layers
    the last node of the tree is `AGG(H^L, A_((L-1)/2))`.
    Differs from the paper: odd L. In a model, `LayerDiversity`,
    `MultiLayerAttention` and `FineGrainedLayerAttention` read the outputs H^l
    of the blocks, not A^l, for which the paper writes H^l in Eq. 4. The
    smallest growth that the paper reports, 14.7M weights at base size, is not
    that of Eq. 5 (`L D^2` per stack) but that of `linear_mode="feed_forward"`:
    a feed-forward network without activation and bias, so that each W_l is a
    product of two matrices.
    Cost: weights in units of D^2, for F = 4 D and L = 6: dense 0, linear 6 or
    28, iterative 60, hierarchical 44. Positions are independent unless
    `function` is "attention".

    Args:
        strategy: `"dense"`, `"linear"`, `"iterative"` or `"hierarchical"`.
        function: `"sigmoid"`, `"relu"` or `"attention"`: the function of the
            nodes, see `AggregationNode`.
        residual: `"all"`, `"top"` or `"none"`: the residual connections of the
            nodes. `"top"` is H^l in the chain and H^(2i) in the tree.
        intermediate_dim: int. Width F. Defaults to `4 D`.
        linear_mode: `"matrices"` (Eq. 5) or `"feed_forward"`.
        num_heads: int. Heads of nodes with `function="attention"`.
        num_layers: int. Number of blocks L of the stack; a model sets it.
            Defaults to the number of states at build.
        dropout: float in [0, 1). Dropout probability on the output of each
            node's function.
        attention_dropout: float in [0, 1). Dropout probability on attention
            weights, with `function="attention"`.
        layer_norm_epsilon: float. Added to the variance.
        key_bias: bool. Whether key projections have a bias, with
            `function="attention"`.
        attention_initializer: Keras initializer of query, key and value
            projections with `function="attention"`; `None` for the one of
            `MultiHeadAttention`.
        relative_position: unbuilt layer of relative positions of the nodes
            with `function="attention"`, as in `MultiHeadAttention`; or `None`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of float tensors `(B, S, D)`, the outputs of blocks
            1 to l, without the embedding; with a cache `(B*K, 1, D)`.
        previous: list of the outputs of this layer after blocks 1 to l - 1;
            only the newest A is then computed. `None` computes all of them.
        padding_mask: bool tensor `(B, S)`, `True` = real token. `None` means
            that all tokens are real. This and the next four arguments are
            used only with `function="attention"`.
        attention_mask: bool tensor that broadcasts to `(B, S, S)`, `True` = may
            attend; with a cache `(B, K, M*K)`. `None` allows all positions.
        use_causal_mask: bool. Whether position t attends only to s <= t.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Position of this decoding step.
        training: bool. Whether dropout is active.

    Returns:
        Float tensor `(B, S, D)`: the last A; or, with `previous`, the newest
        state if block l has no node. Then the new cache if one was passed.

    Raises:
        ValueError: if an option is not allowed, for a wrong number of states,
            or for `previous` without `num_layers`.

    Masking: uses `padding_mask`, or else the mask that Keras attaches to the
    states, in nodes with attention only. The mask is attached to the output.

    Example:
    >>> aggregation = keras_deepnmt.layers.LayerAggregation("hierarchical")
    >>> aggregation([np.ones((3, 5, 8)) for _ in range(6)]).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Dou et al., 2018](https://arxiv.org/abs/1810.10181), Section 3.1.
    """

    slots = ("encoder_aggregation", "decoder_aggregation")

    def __init__(
        self,
        strategy="hierarchical",
        function="sigmoid",
        residual="all",
        intermediate_dim=None,
        linear_mode="matrices",
        num_heads=8,
        num_layers=None,
        dropout=0.1,
        attention_dropout=0.0,
        layer_norm_epsilon=1e-6,
        key_bias=False,
        attention_initializer=None,
        relative_position=None,
        **kwargs,
    ):
        check_choice("strategy", strategy, STRATEGIES)
        check_choice("linear_mode", linear_mode, LINEAR_MODES)
        check_node_options(
            function,
            residual,
            intermediate_dim,
            num_heads,
            dropout,
            attention_dropout,
            layer_norm_epsilon,
        )
        if num_layers is not None:
            check_integer("num_layers", num_layers)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.strategy = strategy
        self.function = function
        self.residual = residual
        self.intermediate_dim = intermediate_dim
        self.linear_mode = linear_mode
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.key_bias = key_bias
        self.attention_initializer = initializer_config(attention_initializer)
        self.relative_position, self.given_position = position_argument(
            relative_position
        )

    @property
    def feeds_back(self):
        """Whether block l + 1 reads this layer's output after block l."""
        return self.strategy in ("dense", "hierarchical")

    def build(self, layer_states_shape):
        shape = common_shape("layer_states", layer_states_shape)
        self.num_states = self.num_layers or len(layer_states_shape)
        self.nodes, blocks = [], []
        # Builds all nodes: the first call in a stack has a single state.
        for number in range(1, self.num_states + 1):
            inputs_shape = self._select_node_inputs(
                [shape] * number, [shape] * (number - 1)
            )
            if inputs_shape:
                node = self._make_node(number, shape[-1])
                node.build(inputs_shape)
                self.nodes.append(node)
                blocks.append(number)
        self.node_blocks = tuple(blocks)

    def call(
        self,
        layer_states,
        previous=None,
        padding_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        training=None,
    ):
        self._check_states(layer_states, previous)
        check_mask("padding_mask", padding_mask, layer_states[0].shape[:2])
        options = {
            "padding_mask": padding_mask,
            "attention_mask": attention_mask,
            "use_causal_mask": use_causal_mask,
            "cache_index": cache_index,
            "training": training,
        }
        if previous is not None:
            output, cache = self._aggregate_newest(
                layer_states, previous, cache, **options
            )
        else:
            previous = []
            for number in range(1, len(layer_states) + 1):
                output, cache = self._aggregate_newest(
                    layer_states[:number], previous, cache, **options
                )
                previous.append(output)
        return output if cache is None else (output, cache)

    @property
    def keeps_history(self):
        """Whether the hypotheses of a sentence can share its cache."""
        return self._has_attention

    def init_cache(self, batch_size, max_length, num_beams=1):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of sentences B.
            max_length: int or scalar tensor. Number of positions M.
            num_beams: int or scalar tensor. Number of hypotheses K of each
                sentence.

        Returns:
            Dict of one cache per node, by its name, if the nodes use attention;
            otherwise an empty dict.
        """
        if not self._has_attention:
            return {}
        return {
            node.name: node.init_cache(batch_size, max_length, num_beams)
            for node in self.nodes
        }

    def input_matrices(self):
        """Returns the first weight matrix of each node, split by input.

        Returns:
            List of float tensors `(n, D, F)`, one per node, lowest first: entry
            j is the matrix that multiplies input j.
        """
        return [matrix for n in self.nodes for matrix in n.input_matrices()]

    def _aggregate_newest(self, layer_states, previous, cache, **options):
        """Computes the output after the newest block, and the updated cache."""
        number, newest = len(layer_states), layer_states[-1]
        if self.strategy == "dense":
            return sum(previous, newest), cache  # Eq. 4
        if number not in self.node_blocks:
            return newest, cache
        node = self.nodes[self.node_blocks.index(number)]
        inputs = self._select_node_inputs(layer_states, previous)
        if self.strategy == "linear":
            return node(inputs), cache
        if cache is None or not self._has_attention:
            return node(inputs, **options), cache
        output, updated = node(inputs, cache=cache[node.name], **options)
        return output, {**cache, node.name: updated}

    def _select_node_inputs(self, layer_states, previous):
        """Returns the inputs of the newest block's node, if it has one."""
        number = len(layer_states)
        is_last = number == self.num_states
        if self.strategy == "linear":
            return layer_states if is_last else []  # Eq. 5
        if self.strategy == "dense" or number == 1:
            return []
        if self.strategy == "iterative" or (number % 2 and is_last):
            return [layer_states[-1], previous[-1]]  # Eq. 6
        # A_(i-1) is two blocks below; the lowest node has none.
        return [] if number % 2 else [*layer_states[-2:], *previous[-2:-1]]

    def _make_node(self, number, width):
        options = {
            "name": f"node_{len(self.nodes) + 1}",
            "dtype": self.dtype_policy,
        }
        if self.strategy == "linear":
            inner = self.intermediate_dim or 4 * width
            through_dim = None if self.linear_mode == "matrices" else inner
            return LinearCombination(through_dim, **options)
        options |= node_options(self)
        options["key_bias"] = self.key_bias
        # In a tree the first two inputs are H^(2i-1) and H^(2i), the top.
        in_tree = self.strategy == "hierarchical" and number % 2 == 0
        return AggregationNode(top_index=1 if in_tree else 0, **options)

    @property
    def _has_attention(self):
        nodes_attend = self.strategy in ("iterative", "hierarchical")
        return nodes_attend and self.function == "attention"

    def _check_states(self, layer_states, previous):
        newest, *others = reversed(layer_states)
        check_alike("layer_states", others, "layer_states", newest)
        check_alike("previous", previous or (), "layer_states", newest)
        received = f"Received: {len(layer_states)} states"
        if previous is None:
            if len(layer_states) != self.num_states:
                raise ValueError(
                    "`layer_states` must hold one state for each of the "
                    f"{self.num_states} blocks. {received}."
                )
            return
        received += f" and {len(previous)} previous outputs"
        if self.num_layers is None:
            raise ValueError(
                "`previous` needs `num_layers`, the number of blocks of the "
                f"stack. {received}, num_layers=None."
            )
        if not len(previous) + 1 == len(layer_states) <= self.num_states:
            raise ValueError(
                "`previous` must hold one output for each of `layer_states` "
                f"except the newest, and there are {self.num_states} blocks. "
                f"{received}."
            )

    def compute_output_shape(self, layer_states_shape):
        return tuple(layer_states_shape[-1])

    def compute_mask(self, layer_states, previous_mask=None):
        return first_mask(previous_mask)

    def get_config(self):
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in NODE_OPTIONS},
            "strategy": self.strategy,
            "linear_mode": self.linear_mode,
            "num_layers": self.num_layers,
            "key_bias": self.key_bias,
        }
