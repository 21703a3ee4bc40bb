"""Hybrid self-attention, HySAN (Song et al., 2018, Eq. 8-14)."""

import keras
from keras import ops

from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.masks import relative_positions

BRANCHES = ("global", "forward", "backward", "local")
FUSIONS = ("sum", "concat", "gated_sum")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class HybridSelfAttention(MultiHeadAttention):
    """Looks at all positions, to the left, to the right and nearby at once.

    Self-attention treats a sentence as a bag of words but for what position
    embeddings say. Here several branches read one alignment matrix, each
    through a mask of its own, so that order and neighbourhood show without
    further projections.

    Given projections Q, K, V of width H per head it computes for branches i
    (Song et al., 2018, Eq. 8, 10, 12-14):

        E = Q K^T / sqrt(H)
        H_i = softmax(E + M_i) V, the heads side by side
        "sum":        O = sum_i H_i
        "concat":     O = F [H_1; ...; H_n]
        "gated_sum":  O = sum_i G_i(H_i) * H_i
                      G_i(x) = sigmoid(W_2i relu(W_1i x))
        output = O W_O

    where M_i lets position t see position s iff

        global: always     forward: s <= t
        local:  |s - t| <= window     backward: s >= t

    and, in a decoder, s <= t besides. Here `window` is the paper's k, and
    D / `gate_reduction` the width between W_1 and W_2.
    Differs from the paper: a position sees itself in both directions unless
    `strict`; a row that may see no key gives zeros; the fusion precedes W_O.
    Cost: beside multi-head attention O(n B N T S) time of n branches, and
    weights: "sum" 0, "concat" `n D^2`, "gated_sum" `2 n D^2 / gate_reduction`.

    Args:
        num_heads: int. Number of heads N; must divide the query's width D.
        branches: list of distinct names out of `"global"`, `"forward"`,
            `"backward"` and `"local"`. A decoder has no `"backward"`.
        window: int, or list of ints for one local branch each. How far a
            local branch sees to each side.
        fusion: `"sum"`, `"concat"` or `"gated_sum"`.
        gate_reduction: int. D over the inner width of a gate; divides D.
        strict: bool. Whether the directed branches see other positions only:
            s < t and s > t.
        attention_dropout, use_bias, key_bias, kernel_initializer,
        bias_initializer, **kwargs: as in `MultiHeadAttention`. F and the
            gates have no bias and start Glorot uniform: a concatenation then
            starts at about the size of one branch, and a gate near one half.

    Call arguments:
        query, ..., training: as in `MultiHeadAttention`; position t of the
            query and position t of the value are the same token. A static
            cache, which has no positions, is refused.

    Returns:
        `output`, a float tensor like `query`; then `cache` iff one was passed;
        then the scores of each branch `(B, n, N, T, S)` iff asked for, in the
        order of `branch_names`.

    Raises:
        ValueError: for unknown or repeated branches, an unknown fusion, a
            negative window; if `gate_reduction` does not divide `D` (at
            build); if `"backward"` is called with a causal mask or a cache.

    Masking: explicit masks only; every branch obeys `attention_mask`.

    Example:
    >>> attention = keras_deepnmt.layers.HybridSelfAttention(
    ...     num_heads=2, window=[1, 3], gate_reduction=4
    ... )
    >>> attention(np.zeros((3, 5, 8), "float32")).shape
    TensorShape([3, 5, 8])
    >>> attention.branch_names
    ('global', 'forward', 'backward', 'local_1', 'local_3')

    Reference:
        - [Song et al., 2018](https://arxiv.org/abs/1811.00253).
    """

    def __init__(
        self,
        num_heads,
        branches=BRANCHES,
        window=2,
        fusion="gated_sum",
        gate_reduction=32,
        strict=False,
        attention_dropout=0.0,
        use_bias=True,
        key_bias=False,
        kernel_initializer=None,
        bias_initializer="zeros",
        **kwargs,
    ):
        _check_branches(branches)
        windows = (window,) if isinstance(window, int) else tuple(window)
        if not windows or min(windows) < 0:
            raise ValueError(
                "`window` must be an int >= 0 or a list of such. "
                f"Received: window={window}."
            )
        if fusion not in FUSIONS:
            raise ValueError(
                f"`fusion` must be one of {FUSIONS}. Received: fusion={fusion}."
            )
        if gate_reduction < 1:
            raise ValueError(
                "`gate_reduction` must be at least 1. "
                f"Received: gate_reduction={gate_reduction}."
            )
        super().__init__(
            num_heads,
            attention_dropout,
            use_bias,
            key_bias,
            kernel_initializer,
            bias_initializer,
            **kwargs,
        )
        self.branches = tuple(branches)
        self.window = window if isinstance(window, int) else windows
        self.fusion = fusion
        self.gate_reduction = gate_reduction
        self.strict = strict
        self._windows = windows

    @property
    def branch_names(self):
        """The names of the branches, one for each local window."""
        names = []
        for branch in self.branches:
            if branch == "local":
                names += [f"local_{window}" for window in self._windows]
            else:
                names.append(branch)
        return tuple(names)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        width = query_shape[-1]
        if self.fusion == "concat":
            self.fusion_projection = self._fusion_layer(
                "fusion", len(self.branch_names) * width, width
            )
        elif self.fusion == "gated_sum":
            if width % self.gate_reduction:
                raise ValueError(
                    "`gate_reduction` must divide the width of `query`. "
                    f"Received: gate_reduction={self.gate_reduction}, "
                    f"query_shape={query_shape}. Pass a smaller "
                    "`gate_reduction`, as gate_reduction=4."
                )
            inner = width // self.gate_reduction
            self.squeezes = [
                self._fusion_layer(f"{name}_squeeze", width, inner)
                for name in self.branch_names
            ]
            self.excites = [
                self._fusion_layer(f"{name}_excite", inner, width)
                for name in self.branch_names
            ]

    def _allowed(self, queries, keys, attention_mask, is_causal, start):
        if start is None:
            raise ValueError(
                "HybridSelfAttention compares the positions of queries and "
                "keys, which a static cache does not have. Use "
                "MultiHeadAttention for cross-attention."
            )
        if is_causal and "backward" in self.branches:
            raise ValueError(
                '`branches` cannot hold "backward" under a causal mask, which '
                "leaves it the position itself at most. Received: "
                f"branches={self.branches}. In a decoder pass "
                'branches=("forward", "local").'
            )
        allowed = super()._allowed(
            queries, keys, attention_mask, is_causal, start
        )
        distances = relative_positions(
            ops.shape(queries)[2], ops.shape(keys)[2], start
        )
        return [
            mask if allowed is None else ops.logical_and(allowed, mask)
            for mask in self._branch_masks(distances)
        ]

    def _branch_masks(self, distances):
        least = 1 if self.strict else 0
        masks = {
            "global": [ops.ones_like(distances, dtype="bool")],
            "forward": [distances <= -least],
            "backward": [distances >= least],
            "local": [ops.abs(distances) <= window for window in self._windows],
        }
        return [mask for branch in self.branches for mask in masks[branch]]

    def _attend(self, queries, keys, values, allowed, training):
        logits = self._align(queries, keys)  # (B, N, T, S)
        weights = [self._weigh(logits, mask) for mask in allowed]  # Eq. 8, 10
        dropped = [self.dropout_layer(a, training=training) for a in weights]
        if self.fusion == "sum":
            # One product with V for all: sum_i (A_i V) = (sum_i A_i) V.
            context = self._gather(sum(dropped[1:], dropped[0]), values)
        else:
            context = self._fuse([self._gather(a, values) for a in dropped])
        return context, ops.stack(weights, axis=1)

    def _fuse(self, contexts):
        if self.fusion == "concat":
            joined = ops.concatenate(contexts, axis=-1)  # (B, T, n D)
            return self.fusion_projection(joined)  # Eq. 13
        gated = []
        for x, squeeze, excite in zip(
            contexts, self.squeezes, self.excites, strict=True
        ):
            gate = ops.sigmoid(excite(ops.relu(squeeze(x))))  # Eq. 14
            gated.append(gate * x)
        return sum(gated[1:], gated[0])  # Eq. 13

    def _fusion_layer(self, name, input_width, width):
        layer = self._projection(
            name,
            width,
            use_bias=False,
            initializer=keras.initializers.GlorotUniform(),
        )
        layer.build((None, None, input_width))
        return layer

    def get_config(self):
        several = not isinstance(self.window, int)
        return {
            **super().get_config(),
            "branches": list(self.branches),
            "window": list(self.window) if several else self.window,
            "fusion": self.fusion,
            "gate_reduction": self.gate_reduction,
            "strict": self.strict,
        }


def _check_branches(branches):
    """Refuses what is no list of distinct branches."""
    unknown = [branch for branch in branches if branch not in BRANCHES]
    if unknown or not branches or len(set(branches)) < len(branches):
        raise ValueError(
            f"`branches` must be distinct names out of {BRANCHES}. "
            f"Received: branches={branches}."
        )
