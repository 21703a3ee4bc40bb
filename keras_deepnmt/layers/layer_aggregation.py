"""Aggregation of a stack's layers (Dou et al., 2018, Eq. 4-7)."""

import keras

from keras_deepnmt.layers.aggregation_node import AggregationNode
from keras_deepnmt.layers.aggregation_options import (
    NODE_OPTIONS,
    check_choice,
    check_node_options,
    common_shape,
)
from keras_deepnmt.layers.linear_combination import LinearCombination

STRATEGIES = ("dense", "linear", "iterative", "hierarchical")
LINEAR_MODES = ("matrices", "feed_forward")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LayerAggregation(keras.layers.Layer):
    """Makes one state out of the states of all layers of a stack.

    A stack hands on its last layer only, and what the lower ones found is
    lost unless every layer copies it. Aggregation keeps them in reach: flatly
    ("dense", "linear"), or by a chain or a tree of `AggregationNode`s.

    Given block outputs H^1 ... H^L it computes (Dou et al., 2018, Section 3.1)

        dense:         A^l = H^l + A^1 + ... + A^(l-1)              (Eq. 4)
        linear:        A = W_1 H^1 + ... + W_L H^L                  (Eq. 5)
        iterative:     A^1 = H^1, A^l = AGG(H^l, A^(l-1))           (Eq. 6)
        hierarchical:  A_1 = AGG(H^1, H^2),
                       A_i = AGG(H^(2i-1), H^(2i), A_(i-1))

    of which the last is the output. "dense" and "hierarchical" feed back: in a
    stack, block l + 1 reads A^l, or A_i if l = 2i. Of an odd number of layers
    the hierarchy ends with `AGG(H^L, A_((L-1)/2))`.
    Differs from the paper: odd L. The smallest growth it reports, 14.7M
    weights at base size, is not that of Eq. 5 (`L D^2` a stack) but that of
    `linear_mode="feed_forward"`, which has neither activation nor bias, so
    that the combination stays linear: W_l is then a product of two matrices.
    Cost: in units of D^2, with F = 4 D and L = 6: dense 0, linear 6 or 28,
    iterative 60, hierarchical 44; all position-wise unless `function` is
    "attention".

    Args:
        strategy: `"dense"`, `"linear"`, `"iterative"` or `"hierarchical"`.
        function: `"sigmoid"`, `"relu"` or `"attention"`; of the nodes.
        residual: `"all"`, `"top"` or `"none"`; of the nodes. The top is H^l in
            the chain and H^(2i) in the tree.
        intermediate_dim: int. Width F. Defaults to `4 D`.
        linear_mode: `"matrices"` (Eq. 5) or `"feed_forward"`.
        num_heads: int. Heads of nodes with `function="attention"`.
        num_layers: int. Blocks L of the stack; a model sets it. Defaults to
            the number of states at build.
        dropout: float in [0, 1). On the output of each node's function.
        layer_norm_epsilon: float. Added to the variance.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        layer_states: list of float tensors `(B, S, D)`, the outputs of blocks
            1 to l, without the embedding; with a cache `(B*K, 1, D)`.
        previous: list of what this layer gave after blocks 1 to l - 1: only
            the newest node is computed then. Defaults to none of them known:
            the whole list is aggregated.
        padding_mask: bool tensor `(B, S)`, `True` = real token. Defaults to
            all real. Like the next three for `function="attention"`.
        use_causal_mask: bool. Whether position t sees only s <= t.
        cache: dict from `init_cache`.
        cache_index: int scalar tensor. Position of this step.
        training: bool. Whether dropout is active.

    Returns:
        Float tensor `(B, S, D)`: the last A, or with `previous`, after a block
        at which no node stands, the newest state; then the new cache iff one
        was passed.

    Raises:
        ValueError: for an unknown option, a wrong number of states, or
            `previous` without `num_layers`.

    Masking: consumes `padding_mask`; only nodes that attend need one.

    Example:
    >>> aggregation = keras_deepnmt.layers.LayerAggregation("hierarchical")
    >>> aggregation([np.ones((3, 5, 8)) for _ in range(6)]).shape
    TensorShape([3, 5, 8])

    Reference:
        - [Dou et al., 2018](https://arxiv.org/abs/1810.10181), Section 3.1.
    """

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
        layer_norm_epsilon=1e-6,
        **kwargs,
    ):
        check_choice("strategy", strategy, STRATEGIES)
        check_choice("linear_mode", linear_mode, LINEAR_MODES)
        check_node_options(function, residual, intermediate_dim, dropout)
        if num_layers is not None and num_layers < 1:
            raise ValueError(
                "`num_layers` must be at least 1, or None. "
                f"Received: num_layers={num_layers}."
            )
        super().__init__(**kwargs)
        self.strategy = strategy
        self.function = function
        self.residual = residual
        self.intermediate_dim = intermediate_dim
        self.linear_mode = linear_mode
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon

    @property
    def feeds_back(self):
        """Whether block l + 1 of a stack reads what this layer gave."""
        return self.strategy in ("dense", "hierarchical")

    def build(self, layer_states_shape):
        shape = common_shape("layer_states", layer_states_shape)
        self.num_states = self.num_layers or len(layer_states_shape)
        self.nodes, blocks = [], []
        # All nodes at once: a stack begins with a single state.
        for number in range(1, self.num_states + 1):
            inputs_shape = self._node_inputs(
                [shape] * number, [shape] * (number - 1)
            )
            if inputs_shape:
                node = self._node(number, shape[-1])
                node.build(inputs_shape)
                self.nodes.append(node)
                blocks.append(number)
        self.node_blocks = tuple(blocks)

    def call(
        self,
        layer_states,
        previous=None,
        padding_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_index=None,
        training=None,
    ):
        self._check_states(layer_states, previous)
        options = {
            "padding_mask": padding_mask,
            "use_causal_mask": use_causal_mask,
            "cache_index": cache_index,
            "training": training,
        }
        if previous is not None:
            output, cache = self._newest(
                layer_states, previous, cache, **options
            )
        else:
            previous = []
            for number in range(1, len(layer_states) + 1):
                output, cache = self._newest(
                    layer_states[:number], previous, cache, **options
                )
                previous.append(output)
        return output if cache is None else (output, cache)

    def init_cache(self, batch_size, max_length):
        """Makes the empty cache of step-by-step aggregation.

        Args:
            batch_size: int or scalar tensor. Rows B*K.
            max_length: int or scalar tensor. Positions M.

        Returns:
            Dict of the caches of nodes that attend; else an empty one.
        """
        if not self._has_attention:
            return {}
        return {
            node.name: node.init_cache(batch_size, max_length)
            for node in self.nodes
        }

    def input_matrices(self):
        """Gives the matrices that the states meet, for each node.

        Returns:
            List of float tensors `(n, D, F)`, one a node, lowest first: entry
            j is the matrix of input j.
        """
        return [matrix for n in self.nodes for matrix in n.input_matrices()]

    def _newest(self, layer_states, previous, cache, **options):
        """What stands after the newest block, and the cache."""
        number, newest = len(layer_states), layer_states[-1]
        if self.strategy == "dense":
            return sum(previous, newest), cache  # Eq. 4
        if number not in self.node_blocks:
            return newest, cache
        node = self.nodes[self.node_blocks.index(number)]
        inputs = self._node_inputs(layer_states, previous)
        if self.strategy == "linear":
            return node(inputs), cache
        if cache is None or not self._has_attention:
            return node(inputs, **options), cache
        output, updated = node(inputs, cache=cache[node.name], **options)
        return output, {**cache, node.name: updated}

    def _node_inputs(self, layer_states, previous):
        """The inputs of the node after the newest block; none: no node."""
        number = len(layer_states)
        is_last = number == self.num_states
        if self.strategy == "linear":
            return layer_states if is_last else []  # Eq. 5
        if self.strategy == "dense" or number == 1:
            return []
        if self.strategy == "iterative" or (number % 2 and is_last):
            return [layer_states[-1], previous[-1]]  # Eq. 6
        # A_(i-1) came two blocks ago, unless this is the lowest node.
        return [] if number % 2 else [*layer_states[-2:], *previous[-2:-1]]

    def _node(self, number, width):
        options = {
            "name": f"node_{len(self.nodes) + 1}",
            "dtype": self.dtype_policy,
        }
        if self.strategy == "linear":
            wide = self.intermediate_dim or 4 * width
            through_dim = None if self.linear_mode == "matrices" else wide
            return LinearCombination(through_dim, **options)
        options |= {name: getattr(self, name) for name in NODE_OPTIONS}
        # The inputs of a tree's node begin with H^(2i-1), H^(2i).
        in_tree = self.strategy == "hierarchical" and number % 2 == 0
        return AggregationNode(top_index=1 if in_tree else 0, **options)

    @property
    def _has_attention(self):
        nodes_attend = self.strategy in ("iterative", "hierarchical")
        return nodes_attend and self.function == "attention"

    def _check_states(self, layer_states, previous):
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
                "`previous` needs `num_layers`, the number of blocks that will "
                f"come. {received}, num_layers=None."
            )
        if not len(previous) + 1 == len(layer_states) <= self.num_states:
            raise ValueError(
                "`previous` must hold one output for each of `layer_states` "
                f"but the newest, and there are {self.num_states} blocks. "
                f"{received}."
            )

    def compute_output_shape(self, layer_states_shape):
        return tuple(layer_states_shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in NODE_OPTIONS},
            "strategy": self.strategy,
            "linear_mode": self.linear_mode,
            "num_layers": self.num_layers,
        }
