"""Hybrid self-attention, HySAN (Song et al., 2018, Eq. 8-14)."""

import keras
from keras import ops

from keras_deepnmt.layers.argument_checks import (
    check_alike,
    check_choice,
    check_integer,
)
from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention
from keras_deepnmt.layers.recording import record

BRANCHES = ("global", "forward", "backward", "local")
FUSIONS = ("sum", "concat", "gated_sum")


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class HybridSelfAttention(MultiHeadAttention):
    """Self-attention with global, forward, backward and local branches.

    Plain self-attention knows the order of words only from the position
    encoding. Here several branches share one matrix of attention logits, and
    each applies a mask of its own: all positions, those to the left, those to
    the right, or those nearby. The branches are then fused. This adds order
    and neighborhood without further query, key or value projections. Use it in
    place of `MultiHeadAttention` for self-attention, on its own or as
    `self_attention=` of a Transformer block.

    Given projections Q, K, V of width H per head it computes for branches i
    (Song et al., 2018, Eq. 8, 10, 12-14):

        E = Q K^T / sqrt(H)
        H_i = softmax(E + M_i) V, with the heads concatenated
        "sum":        O = sum_i H_i
        "concat":     O = F [H_1; ...; H_n]
        "gated_sum":  O = sum_i G_i(H_i) * H_i
                      G_i(x) = sigmoid(W_2i relu(W_1i x))
        output = O W_O

    where the mask M_i allows position t to attend to position s if

        global: always     forward: s <= t
        local:  |s - t| <= window     backward: s >= t

    and, in a decoder, only if s <= t as well. Here `window` is the paper's k,
    and D / `gate_reduction` the width between W_1 and W_2.
    Differs from the paper: the forward and backward branches include the
    position itself unless `strict`; a position that may attend to no key gets
    zeros; the branches are fused before W_O; as in `MultiHeadAttention`, keys
    have no bias, and Q, K and V start with a tenth of Glorot's variance. The
    paper gives no k: 2 is chosen here. That gates have no bias and the inner
    width D / 32 follows from its parameter counts.
    Cost: in addition to multi-head attention, O(n B N T S) time for n branches,
    and weights: "sum" 0, "concat" `n D^2`, "gated_sum"
    `2 n D^2 / gate_reduction`.

    Args:
        num_heads: int. Number of heads N; must divide the query's width D.
        branches: list of distinct names from `"global"`, `"forward"`,
            `"backward"` and `"local"`. In a decoder, leave out `"backward"`.
        window: int, or list of distinct ints for a local branch each. Number of
            positions that a local branch sees on each side.
        fusion: `"sum"`, `"concat"` or `"gated_sum"`.
        gate_reduction: int. D divided by the inner width of a gate, which is
            rounded down, but is at least 1.
        strict: bool. Whether the forward and backward branches exclude the
            position itself: s < t and s > t.
        attention_dropout, use_bias, key_bias, kernel_initializer,
        bias_initializer, relative_position, num_key_value_heads, **kwargs: as
            in `MultiHeadAttention`; positions are those of E, and so of all
            branches. F and the gates have no bias and are initialized Glorot
            uniform: at first, a concatenation has about the size of one branch,
            and gates are near one half.

    Call arguments:
        query, ..., key_mask: as in `MultiHeadAttention`. Position t of the
            query and position t of the value must be the same token: a value
            of another length, or a static cache, which has no positions,
            raises an error.

    Returns:
        `output`, a float tensor like `query`; then `cache` if one was passed;
        then the attention weights of all branches `(B, n, N, T, S)`, in the
        order of `branch_names`, if `return_attention_scores=True`.

    Raises:
        ValueError: for unknown or repeated branches, an unknown fusion, and a
            negative or repeated window; at call, for a value of another length
            than the query, and for `"backward"` with a causal mask or a cache.

    Masking: as in `MultiHeadAttention`; masks apply to every branch.

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

    slots = ("encoder_self_attention", "decoder_self_attention")

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
        relative_position=None,
        num_key_value_heads=None,
        **kwargs,
    ):
        _check_branches(branches)
        is_list = isinstance(window, list | tuple)
        windows = tuple(window) if is_list else (window,)
        is_valid = windows and all(map(_is_window, windows))
        if not is_valid or len(set(windows)) < len(windows):
            raise ValueError(
                "`window` must be an int >= 0 or a list of distinct ones. "
                f"Received: window={window}."
            )
        check_choice("fusion", fusion, FUSIONS)
        check_integer("gate_reduction", gate_reduction)
        super().__init__(
            num_heads,
            attention_dropout,
            use_bias,
            key_bias,
            kernel_initializer,
            bias_initializer,
            relative_position,
            num_key_value_heads,
            **kwargs,
        )
        self.branches = tuple(branches)
        self.window = windows if is_list else window
        self.fusion = fusion
        self.gate_reduction = gate_reduction
        self.strict = strict
        self._windows = windows

    @property
    def branch_names(self):
        """Names of the branches; each local window is a branch of its own."""
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
            self.fusion_projection = self._make_fusion_layer(
                "fusion", len(self.branch_names) * width, width
            )
        elif self.fusion == "gated_sum":
            inner = max(1, width // self.gate_reduction)
            self.squeezes = [
                self._make_fusion_layer(f"{name}_squeeze", width, inner)
                for name in self.branch_names
            ]
            self.excites = [
                self._make_fusion_layer(f"{name}_excite", inner, width)
                for name in self.branch_names
            ]

    def check_slot(self, slot):
        """Refuses a branch that a decoder's causal mask would hide.

        Args:
            slot: str. The name of a slot of a model.

        Raises:
            ValueError: for the branch `"backward"` in a slot of a decoder.
        """
        if slot.startswith("decoder"):
            self._refuse_backward()

    def _refuse_backward(self):
        if "backward" in self.branches:
            raise ValueError(
                '`branches` must not contain "backward" with a causal mask, '
                "which hides all later positions. Received: "
                f"branches={self.branches}. In a decoder pass "
                'branches=("forward", "local").'
            )

    def _check_inputs(self, query, value, key, attention_mask, cache):
        if cache is None:
            # The branches compare positions: those of the same tokens.
            check_alike("value", [value], "query", query)
        super()._check_inputs(query, value, key, attention_mask, cache)

    def _make_mask(self, attention_mask, is_causal, distances):
        if distances is None:
            raise ValueError(
                "`cache` needs a `cache_index`: HybridSelfAttention compares "
                "the positions of queries and keys. Received: "
                "cache_index=None. Use MultiHeadAttention for "
                "cross-attention."
            )
        if is_causal:
            self._refuse_backward()
        allowed = super()._make_mask(attention_mask, is_causal, distances)
        return [
            mask if allowed is None else ops.logical_and(allowed, mask)
            for mask in self._make_branch_masks(distances)
        ]

    def _make_branch_masks(self, distances):
        min_distance = 1 if self.strict else 0
        masks = {
            "global": [ops.ones_like(distances, dtype="bool")],
            "forward": [distances <= -min_distance],
            "backward": [distances >= min_distance],
            "local": [ops.abs(distances) <= window for window in self._windows],
        }
        return [mask for branch in self.branches for mask in masks[branch]]

    def _attend(self, logits, values, allowed, training, distances=None):
        # logits (B, N, T, S), Eq. 8, 10
        weights = [self._softmax(logits, mask) for mask in allowed]
        dropped = [self.dropout_layer(a, training=training) for a in weights]
        if self.fusion == "sum":
            # One product with V for all: sum_i (A_i V) = (sum_i A_i) V.
            context = self._apply_weights(
                sum(dropped[1:], dropped[0]), values, distances
            )
        else:
            context = self._fuse(
                [self._apply_weights(a, values, distances) for a in dropped]
            )
        stacked = ops.stack(weights, axis=1)
        record(self, "weights", stacked)  # (B, n, N, T, S)
        return context, stacked

    def _fuse(self, contexts):
        if self.fusion == "concat":
            joined = ops.concatenate(contexts, axis=-1)  # (B, T, n D)
            return self.fusion_projection(joined)  # Eq. 13
        gated = []
        for name, x, squeeze, excite in zip(
            self.branch_names,
            contexts,
            self.squeezes,
            self.excites,
            strict=True,
        ):
            gate = ops.sigmoid(excite(ops.relu(squeeze(x))))  # Eq. 14
            record(self, f"gate_{name}", gate)  # (B, T, D)
            gated.append(gate * x)
        return sum(gated[1:], gated[0])  # Eq. 13

    def _make_fusion_layer(self, name, input_width, width):
        layer = self._make_projection(
            name,
            width,
            use_bias=False,
            initializer=keras.initializers.GlorotUniform(),
        )
        layer.build((None, None, input_width))
        return layer

    @property
    def _score_axes(self):
        return len(self.branch_names), self.num_heads

    def get_config(self):
        is_list = not isinstance(self.window, int)
        return {
            **super().get_config(),
            "branches": list(self.branches),
            "window": list(self.window) if is_list else self.window,
            "fusion": self.fusion,
            "gate_reduction": self.gate_reduction,
            "strict": self.strict,
        }


def _is_window(value):
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and value >= 0


def _check_branches(branches):
    """Raises a `ValueError` unless all branches are known and distinct."""
    unknown = [branch for branch in branches if branch not in BRANCHES]
    if unknown or not branches or len(set(branches)) < len(branches):
        raise ValueError(
            f"`branches` must be one or more distinct names of {BRANCHES}. "
            f"Received: branches={branches}."
        )
