"""What must be true of MultiHeadAttention: it is Equation 1, a row that may
see no key gives zeros, it cannot see the future, a cache changes nothing,
and beams share the keys of their sentence."""

import numpy as np
import pytest

from keras_deepnmt.layers import MultiHeadAttention

B, T, S, N, H, K = 3, 5, 7, 2, 11, 3
D = N * H


@pytest.fixture
def tensors():
    random = np.random.default_rng(0)
    shapes = {"query": (B, T, D), "key": (B, S, D), "value": (B, S, D)}
    return {
        name: random.normal(size=shape).astype("float32")
        for name, shape in shapes.items()
    }


@pytest.fixture
def attention_mask():
    mask = np.random.default_rng(1).random((B, T, S)) < 0.6
    mask[1, 2] = False
    return mask


def built(shape=(B, T, D), value_shape=(B, S, D), **kwargs):
    layer = MultiHeadAttention(N, **kwargs)
    layer.build(shape, value_shape)
    random = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape) * 0.3)
    return layer


def weights_of(layer):
    return {
        name: (
            np.asarray(getattr(layer, f"{name}_projection").kernel),
            0.0
            if getattr(layer, f"{name}_projection").bias is None
            else np.asarray(getattr(layer, f"{name}_projection").bias),
        )
        for name in ("query", "key", "value", "output")
    }


def reference(layer, query, key, value, mask):
    weights = weights_of(layer)
    q, k, v = (
        x @ weights[name][0].reshape(D, D) + np.reshape(weights[name][1], -1)
        for name, x in (("query", query), ("key", key), ("value", value))
    )
    scores = np.zeros((B, N, query.shape[1], key.shape[1]))
    context = np.zeros((*query.shape[:2], D))
    for b in range(B):
        for n in range(N):
            part = slice(n * H, (n + 1) * H)
            for t in range(query.shape[1]):
                seen = np.flatnonzero(mask[b, t])
                if len(seen) == 0:
                    continue
                logits = k[b, seen, part] @ q[b, t, part] / np.sqrt(H)
                exponents = np.exp(logits - logits.max())
                scores[b, n, t, seen] = exponents / exponents.sum()
                context[b, t, part] = scores[b, n, t, seen] @ v[b, seen, part]
    kernel, bias = weights["output"]
    return context @ kernel.reshape(D, D) + bias, scores


@pytest.mark.parametrize("key_bias", [False, True])
def test_matches_the_equation(tensors, attention_mask, key_bias):
    layer = built(key_bias=key_bias)
    output, scores = layer(
        **tensors, attention_mask=attention_mask, return_attention_scores=True
    )
    expected = reference(layer, **tensors, mask=attention_mask)
    np.testing.assert_allclose(output, expected[0], atol=1e-5)
    np.testing.assert_allclose(scores, expected[1], atol=1e-5)


def test_a_row_that_sees_no_key_gives_zeros(tensors, attention_mask):
    layer = built(use_bias=False)
    output, scores = layer(
        **tensors, attention_mask=attention_mask, return_attention_scores=True
    )
    assert not np.any(np.asarray(scores)[1, :, 2])
    assert not np.any(np.asarray(output)[1, 2])
    assert np.any(np.asarray(output)[1, 1])


def test_value_defaults_to_the_query_and_key_to_the_value(tensors):
    layer = built(value_shape=(B, T, D))
    query = tensors["query"]
    np.testing.assert_array_equal(layer(query), layer(query, query, query))
    layer = built()
    value = tensors["value"]
    np.testing.assert_array_equal(
        layer(query, value), layer(query, value, value)
    )


def test_one_key_is_handed_through(tensors):
    layer = built(value_shape=(B, 1, D))
    value = tensors["value"][:, :1]
    weights = weights_of(layer)
    projected = value @ weights["value"][0].reshape(D, D) + np.reshape(
        weights["value"][1], -1
    )
    expected = projected @ weights["output"][0].reshape(D, D)
    expected = expected + weights["output"][1]
    np.testing.assert_allclose(
        layer(tensors["query"], value),
        np.broadcast_to(expected, (B, T, D)),
        atol=1e-5,
    )


@pytest.mark.parametrize("num_shared", [1, 2])
def test_shared_heads_equal_repeated_ones(num_shared):
    x = np.random.default_rng(0).normal(size=(B * K, T, 4 * H))
    x = x.astype("float32")
    shared, plain = (
        MultiHeadAttention(4, num_key_value_heads=number)
        for number in (num_shared, None)
    )
    for layer in (shared, plain):
        layer.build(x.shape)
    random = np.random.default_rng(2)
    weights = [random.normal(size=w.shape) * 0.3 for w in shared.weights]
    shared.set_weights(weights)
    # The heads of a group have the same keys and values.
    repeated = [
        w.reshape(-1, num_shared, H).repeat(4 // num_shared, 1)
        if w.shape[-1] == num_shared * H
        else w
        for w in weights
    ]
    plain.set_weights(
        [
            w.reshape(old.shape)
            for w, old in zip(repeated, plain.weights, strict=True)
        ]
    )
    expected = np.asarray(plain(x, use_causal_mask=True))
    found = shared(x, use_causal_mask=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # Step by step, with slots for K hypotheses of a sentence.
    caches = [layer.init_cache(B, T, K) for layer in (shared, plain)]
    sizes = [sum(t.numpy().size for t in c.values()) for c in caches]
    assert sizes[0] * 4 == sizes[1] * num_shared
    cache = caches[0]
    for t in range(T):
        output, cache = shared(x[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)
    static = shared.static_cache(x[:B])
    assert static["value"].shape == (B, num_shared, T, H)
    np.testing.assert_allclose(
        shared(x[:, :1], cache=static)[0],
        plain(x[:, :1], cache=plain.static_cache(x[:B]))[0],
        atol=1e-5,
    )


def test_refuses_shared_heads_that_do_not_divide_the_heads():
    with pytest.raises(ValueError, match="num_key_value_heads=3, num_heads=4"):
        MultiHeadAttention(4, num_key_value_heads=3)


def test_padding_cannot_be_seen(tensors):
    layer = built()
    real = np.arange(S) < np.array([[7], [4], [1]])
    mask = real[:, None, :]
    before = layer(**tensors, attention_mask=mask)
    for name in ("key", "value"):
        tensors[name] = np.where(real[..., None], tensors[name], 1e4)
    np.testing.assert_allclose(
        layer(**tensors, attention_mask=mask), before, atol=1e-5
    )


def test_future_cannot_be_seen(tensors):
    layer = built(value_shape=(B, T, D))
    query = tensors["query"]
    before = np.asarray(layer(query, use_causal_mask=True))
    for t in range(T - 1):
        changed = query.copy()
        changed[:, t + 1 :] = 1e2
        after = np.asarray(layer(changed, use_causal_mask=True))
        np.testing.assert_allclose(
            after[:, : t + 1], before[:, : t + 1], atol=1e-5
        )
        assert not np.allclose(after[:, t + 1 :], before[:, t + 1 :])


def test_cached_equals_uncached(tensors):
    layer = built(value_shape=(B, T, D))
    query = tensors["query"]
    expected = np.asarray(layer(query, use_causal_mask=True))
    # Longer than the sentence: positions that are not written cannot be seen.
    cache = layer.init_cache(B, T + 2)
    for t in range(T):
        output, cache = layer(query[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)


def test_beams_share_the_keys_of_their_sentence(tensors, attention_mask):
    layer = built()
    mask = attention_mask[:, :1]
    value = tensors["value"]
    query = np.random.default_rng(3).normal(size=(B * K, 1, D))
    query = query.astype("float32")
    cache = layer.static_cache(value)
    for tensor in cache.values():
        assert tensor.shape[0] == B
    output, again = layer(query, attention_mask=mask, cache=cache)
    expected = layer(
        query,
        np.repeat(value, K, axis=0),
        attention_mask=np.repeat(mask, K, axis=0),
    )
    np.testing.assert_allclose(output, expected, atol=1e-5)
    assert set(again) == set(cache)


def test_dropout_acts_in_training_only(tensors):
    layer = built(attention_dropout=0.5)
    still = layer(**tensors)
    np.testing.assert_array_equal(layer(**tensors, training=False), still)
    assert not np.allclose(layer(**tensors, training=True), still)


@pytest.mark.parametrize(
    "options, num_weights",
    [
        ({}, 4 * D * D + 3 * D),
        ({"key_bias": True}, 4 * D * D + 4 * D),
        ({"use_bias": False}, 4 * D * D),
    ],
)
def test_the_number_of_parameters_is_exact(options, num_weights):
    assert built(**options).count_params() == num_weights


def test_refuses_heads_that_do_not_divide_the_width():
    with pytest.raises(ValueError, match="must divide.*num_heads=3"):
        MultiHeadAttention(3)(np.zeros((B, T, 8), "float32"))


def test_refuses_a_dropout_of_one():
    with pytest.raises(ValueError, match="attention_dropout=1.0"):
        MultiHeadAttention(N, attention_dropout=1.0)
