"""What must be true of AverageAttention: it is Equations 1 and 2 of Zhang et
al. (2018), a step needs one vector, steps equal all at once, also in half
precision."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import AverageAttention, TransformerDecoderBlock

B, T, D, F = 3, 7, 5, 11


@pytest.fixture
def query():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


def built(**options):
    layer = AverageAttention(F, **options)
    layer.build((B, T, D))
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


@pytest.fixture
def layer():
    return built()


def reference(layer, query, activation):
    w_1, b_1, w_2, b_2, w, b = layer.get_weights()
    output = np.zeros(query.shape)
    for t in range(T):
        average = query[:, : t + 1].sum(axis=1) / (t + 1)
        g = activation(average @ w_1 + b_1) @ w_2 + b_2  # Eq. 1
        y = query[:, t]
        gates = np.concatenate([y, g], axis=-1) @ w + b
        i, f = np.split(1 / (1 + np.exp(-gates)), 2, axis=-1)
        output[:, t] = i * y + f * g  # Eq. 2
    return output


@pytest.mark.parametrize(
    ("name", "activation"),
    [("relu", lambda x: np.maximum(x, 0)), ("tanh", np.tanh)],
)
def test_matches_the_equations(query, name, activation):
    layer = built(activation=name)
    expected = reference(layer, query, activation)
    np.testing.assert_allclose(layer(query), expected, rtol=1e-4, atol=1e-5)
    assert layer.count_params() == 4 * D * D + 2 * D + 2 * D * F + F + D


def test_cached_equals_uncached(layer, query):
    expected = np.asarray(layer(query))
    cache = layer.init_cache(B, T)
    for t in range(T):
        output, cache = layer(query[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(
            output, expected[:, t : t + 1], rtol=1e-4, atol=1e-5
        )
    # One vector for each hypothesis, at all lengths.
    assert {n: x.shape for n, x in cache.items()} == {"state": (B, 1, D)}


def test_in_a_block_the_sum_is_not_rounded_either():
    block = TransformerDecoderBlock(
        1, F, AverageAttention(F), dtype="mixed_bfloat16"
    )
    memory = np.ones((1, 2, D), "float32")
    inputs = np.full((1, T, D), 0.5, "float32")
    inputs[:, 0] = 256.0  # in bfloat16 256 + 0.5 is 256
    expected = keras.ops.cast(block(inputs, memory), "float32")
    cache, static = block.init_cache(1, T), block.static_cache(memory)
    for t in range(T):
        output, cache = block(
            inputs[:, t : t + 1],
            static_cache=static,
            cache=cache,
            cache_index=t,
        )
        np.testing.assert_array_equal(cache["state"], 256.0 + 0.5 * t)
        output = keras.ops.cast(output, "float32")
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=0.02)


def test_refuses_to_look_ahead(layer, query):
    with pytest.raises(ValueError, match="use_causal_mask=False"):
        layer(query, use_causal_mask=False)
