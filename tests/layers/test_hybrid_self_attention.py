"""What must be true of HybridSelfAttention: it is Equations 8 to 14 for every
fusion, one global branch is multi-head attention, its masks are what their
names say, an empty row gives zeros, padding, the future and what is beyond a
window are never seen, a cache changes nothing, and the fusions cost exactly
what the paper's tables print."""

import numpy as np
import pytest

from keras_deepnmt.layers import HybridSelfAttention, MultiHeadAttention

B, T, N, H = 3, 7, 2, 11
D = N * H
FUSIONS = ("sum", "concat", "gated_sum")
ENCODER = ("global", "forward", "backward", "local")
DECODER = ("forward", "local")
REAL = np.arange(T) < np.array([[7], [4], [1]])  # (B, T)


@pytest.fixture
def states():
    random = np.random.default_rng(0)
    return random.normal(size=(2, B, T, D)).astype("float32")


def built(branches, fusion="sum", scale=0.3, **kwargs):
    layer = HybridSelfAttention(
        N, branches, fusion=fusion, gate_reduction=2, **kwargs
    )
    layer.build((B, T, D))
    random = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape) * scale)
    return layer


def dense(layer, x):
    bias = 0.0 if layer.bias is None else np.asarray(layer.bias)
    return x @ np.asarray(layer.kernel) + bias


def sees(branch, t, s, strict):
    if branch == "forward":
        return s < t if strict else s <= t
    if branch == "backward":
        return s > t if strict else s >= t
    if branch.startswith("local"):
        return abs(s - t) <= int(branch.split("_")[1])
    return True


def branch_context(layer, branch, query, value, mask):
    """H_i (B, T, D) and its weights (B, N, T, S), by loops."""
    q = dense(layer.query_projection, query)
    k = dense(layer.key_projection, value)
    v = dense(layer.value_projection, value)
    context, scores = np.zeros((B, T, D)), np.zeros((B, N, T, T))
    for b in range(B):
        for n in range(N):
            part = slice(n * H, (n + 1) * H)
            for t in range(T):
                seen = [
                    s
                    for s in range(T)
                    if mask[b, t, s] and sees(branch, t, s, layer.strict)
                ]
                if seen:
                    logits = k[b, seen, part] @ q[b, t, part] / np.sqrt(H)
                    exponents = np.exp(logits - logits.max())
                    weights = exponents / exponents.sum()
                    scores[b, n, t, seen] = weights
                    context[b, t, part] = weights @ v[b, seen, part]
    return context, scores


def reference(layer, query, value, mask):
    contexts, scores = zip(
        *[
            branch_context(layer, branch, query, value, mask)
            for branch in layer.branch_names
        ],
        strict=True,
    )
    if layer.fusion == "sum":
        fused = sum(contexts)
    elif layer.fusion == "concat":
        fused = dense(layer.fusion_projection, np.concatenate(contexts, -1))
    else:
        fused = 0.0
        for number, context in enumerate(contexts):
            inner = np.maximum(dense(layer.squeezes[number], context), 0.0)
            gate = 1 / (1 + np.exp(-dense(layer.excites[number], inner)))
            fused = fused + gate * context
    return dense(layer.output_projection, fused), np.stack(scores, axis=1)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_matches_the_equation(states, fusion, strict):
    layer = built(ENCODER, fusion, window=[1, 3], strict=strict)
    mask = np.broadcast_to(REAL[:, None, :], (B, T, T))
    output, scores = layer(
        *states, attention_mask=REAL[:, None, :], return_attention_scores=True
    )
    expected = reference(layer, *states, mask)
    assert scores.shape == (B, 5, N, T, T)
    np.testing.assert_allclose(scores, expected[1], atol=1e-5)
    np.testing.assert_allclose(output, expected[0], atol=1e-5)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_matches_the_equation_in_a_decoder(states, fusion):
    layer = built(DECODER, fusion)
    mask = np.broadcast_to(np.tril(np.ones((T, T), bool)), (B, T, T))
    output = layer(states[0], use_causal_mask=True)
    expected, _ = reference(layer, states[0], states[0], mask)
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"use_causal_mask": True}])
def test_one_global_branch_is_multi_head_attention(states, options):
    layer = built(("global",), key_bias=True)
    plain = MultiHeadAttention(N, key_bias=True)
    plain.build((B, T, D))
    plain.set_weights(layer.get_weights())
    options = {**options, "attention_mask": REAL[:, None, :]}
    np.testing.assert_array_equal(
        layer(states[0], **options), plain(states[0], **options)
    )


@pytest.mark.parametrize(
    "fusion, totals",
    [
        ("concat", [524_288, 6_291_456, 25_165_824]),
        ("gated_sum", [32_768, 393_216, 1_572_864]),
        ("sum", [0, 0, 0]),
    ],
)
def test_the_number_of_parameters_is_exact(fusion, totals):
    sizes = [(2, 256, 4), (6, 512, 8), (6, 1024, 16)]
    for total, (num_layers, width, num_heads) in zip(
        totals, sizes, strict=True
    ):
        layer = HybridSelfAttention(num_heads, fusion=fusion)
        layer.build((None, None, width))
        plain = 4 * width**2 + 3 * width
        assert num_layers * (layer.count_params() - plain) == total


def test_concatenation_with_identities_is_the_sum(states):
    layer, total = built(ENCODER, "concat"), built(ENCODER, "sum")
    kernel = layer.fusion_projection.kernel
    kernel.assign(np.concatenate([np.eye(D)] * 4))
    copy_projections(total, layer)
    np.testing.assert_allclose(layer(states[0]), total(states[0]), atol=1e-4)


def test_a_gate_without_its_second_layer_halves_the_sum(states):
    layer = built(ENCODER, "gated_sum", use_bias=False)
    total = built(ENCODER, "sum", use_bias=False)
    for excite in layer.excites:
        excite.kernel.assign(np.zeros(excite.kernel.shape))
    copy_projections(total, layer)
    np.testing.assert_allclose(
        layer(states[0]), 0.5 * total(states[0]), atol=1e-5
    )


def copy_projections(target, source):
    for name in ("query", "key", "value", "output"):
        getattr(target, f"{name}_projection").set_weights(
            getattr(source, f"{name}_projection").get_weights()
        )


def weights_seen(branch, states, **options):
    """Which (t, s) have weight in a layer of one branch."""
    layer = built((branch,), **options)
    _, scores = layer(states[0], return_attention_scores=True)
    return np.asarray(scores)[0, 0, 0] > 0


def test_the_directions_share_the_position_itself_and_see_all(states):
    forward = weights_seen("forward", states)
    backward = weights_seen("backward", states)
    np.testing.assert_array_equal(forward & backward, np.eye(T, dtype=bool))
    assert np.all(forward | backward)
    assert forward[3, 2] and not forward[3, 4]


def test_strict_directions_share_nothing(states):
    forward = weights_seen("forward", states, strict=True)
    backward = weights_seen("backward", states, strict=True)
    np.testing.assert_array_equal(forward ^ backward, ~np.eye(T, dtype=bool))
    assert not np.any(forward & backward)


def test_a_window_of_zero_hands_the_value_through(states):
    layer = built(("local",), window=0)
    value = dense(layer.value_projection, states[1])
    expected = dense(layer.output_projection, value)
    np.testing.assert_allclose(layer(*states), expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_as_long_as_the_sentence_is_global(states, causal):
    options = {"attention_mask": REAL[:, None], "use_causal_mask": causal}
    wide = built(("local",), window=T - 1)(states[0], **options)
    everywhere = built(("global",))(states[0], **options)
    np.testing.assert_array_equal(wide, everywhere)
    narrow = built(("local",), window=T - 2)(states[0], **options)
    assert not np.allclose(narrow, everywhere)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_in_a_decoder_a_window_ends_at_the_position(states, fusion):
    layer = built(("local",), fusion, window=2)
    _, scores = layer(
        states[0], use_causal_mask=True, return_attention_scores=True
    )
    age = np.arange(T)[:, None] - np.arange(T)
    seen = (age >= 0) & (age <= 2)
    np.testing.assert_array_equal(
        np.asarray(scores) > 0, np.broadcast_to(seen, (B, 1, N, T, T))
    )


@pytest.mark.parametrize("fusion", FUSIONS)
def test_strict_branches_give_zeros_where_they_see_nothing(states, fusion):
    for branch, empty in (
        ("forward", [(0, 0), (1, 0), (2, 0)]),
        # The last real tokens: padding must not be looked at instead.
        ("backward", [(0, 6), (1, 3), (2, 0)]),
    ):
        layer = built((branch,), fusion, strict=True, use_bias=False)
        output, scores = layer(
            states[0],
            attention_mask=REAL[:, None],
            return_attention_scores=True,
        )
        assert np.all(np.isfinite(output))
        zero = np.all(np.asarray(output) == 0, axis=-1) & REAL
        assert list(zip(*np.nonzero(zero), strict=True)) == empty
        for b, t in empty:
            assert not np.any(np.asarray(scores)[b, :, :, t])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_amount_of_padding_changes_nothing(states, fusion, strict):
    layer = built(ENCODER, fusion, strict=strict)
    mask = REAL[:, None]
    before = np.asarray(layer(states[0], attention_mask=mask))
    wider = np.pad(
        np.where(REAL[..., None], states[0], 1e3), ((0, 0), (0, 4), (0, 0))
    )
    mask = np.pad(mask, ((0, 0), (0, 0), (0, 4)))
    after = np.asarray(layer(wider, attention_mask=mask))[:, :T]
    np.testing.assert_allclose(after[REAL], before[REAL], atol=1e-5)


def test_only_directions_and_windows_know_the_order(states):
    order = np.random.default_rng(4).permutation(T)

    def is_blind(branches):
        layer = built(branches)
        return np.allclose(
            layer(states[0][:, order]),
            np.asarray(layer(states[0]))[:, order],
            atol=1e-5,
        )

    assert is_blind(("global",))
    for branch in ("forward", "backward", "local"):
        assert not is_blind(("global", branch))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_cached_equals_uncached(states, fusion, strict):
    layer = built(("global", *DECODER), fusion, window=[1, 2], strict=strict)
    query = states[0]
    expected = np.asarray(layer(query, use_causal_mask=True))
    # Longer than the sentence: positions that are not written cannot be seen.
    cache = layer.init_cache(B, T + 2)
    for t in range(T):
        output, cache, scores = layer(
            query[:, t : t + 1],
            cache=cache,
            cache_index=t,
            return_attention_scores=True,
        )
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)
        assert scores.shape == (B, 4, N, 1, T + 2)


def test_future_cannot_be_seen(states):
    layer = built(DECODER, "gated_sum", scale=0.1)
    query = states[0]
    before = np.asarray(layer(query, use_causal_mask=True))
    for t in range(T - 1):
        changed = query.copy()
        changed[:, t + 1 :] = 1e2
        after = np.asarray(layer(changed, use_causal_mask=True))
        np.testing.assert_allclose(
            after[:, : t + 1], before[:, : t + 1], atol=1e-5
        )
        assert not np.allclose(after[:, t + 1 :], before[:, t + 1 :])


def test_each_branch_drops_weights_of_its_own(states):
    # Two branches that see the same: only their dropped weights differ.
    layer = built(
        ("global", "local"), "concat", window=T, attention_dropout=0.5
    )
    still = layer(states[0])
    np.testing.assert_array_equal(layer(states[0], training=False), still)
    # F subtracts one branch from the other: all that is left is chance.
    layer.fusion_projection.kernel.assign(
        np.concatenate([np.eye(D), -np.eye(D)])
    )
    bias = np.asarray(layer.output_projection.bias)
    np.testing.assert_allclose(layer(states[0]) - bias, 0.0, atol=1e-5)
    dropped = layer(states[0], training=True) - bias
    assert np.abs(dropped).max() > 0.1


def test_a_decoder_has_no_backward_branch(states):
    layer = built(ENCODER)
    with pytest.raises(ValueError, match='pass branches=."forward", "local".'):
        layer(states[0], use_causal_mask=True)
    with pytest.raises(ValueError, match='must not contain "backward"'):
        layer(states[0][:, :1], cache=layer.init_cache(B, T), cache_index=0)


def test_refuses_a_static_cache(states):
    layer = built(ENCODER)
    cache = layer.static_cache(states[1])
    with pytest.raises(ValueError, match="Use MultiHeadAttention"):
        layer(states[0][:, :1], cache=cache)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"branches": ("global", "left")}, "distinct names.*left"),
        ({"branches": ("local", "local")}, "distinct names"),
        ({"window": [2, 2]}, "list of distinct ones. Received: window=.2, 2"),
        ({"branches": ()}, "distinct names"),
        ({"window": -1}, "window=-1"),
        ({"window": [2, -3]}, r"window=\[2, -3\]"),
        ({"window": []}, r"window=\[\]"),
        ({"fusion": "mean"}, "fusion='mean'"),
        ({"gate_reduction": 0}, "gate_reduction=0"),
        ({"attention_dropout": 1.0}, "attention_dropout=1.0"),
    ],
)
def test_refuses_what_makes_no_layer(options, message):
    with pytest.raises(ValueError, match=message):
        HybridSelfAttention(N, **options)
