"""What must be true of SimplerSimpleRecurrentUnit: it is the recurrence of Kim
et al. (2019) at every length, a step needs one vector, steps equal all at once,
also in half precision."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import (
    SimplerSimpleRecurrentUnit,
    TransformerDecoderBlock,
)

B, T, D = 3, 11, 5


@pytest.fixture
def query():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


@pytest.fixture
def layer():
    layer = SimplerSimpleRecurrentUnit()
    layer.build((B, T, D))
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def reference(layer, query):
    w_f, b_f, w = layer.get_weights()
    state, output = np.zeros((B, D)), np.zeros(query.shape)
    for t in range(query.shape[1]):
        f = 1 / (1 + np.exp(-(query[:, t] @ w_f + b_f)))
        state = f * state + (1 - f) * (query[:, t] @ w)
        output[:, t] = np.maximum(state, 0)
    return output


@pytest.mark.parametrize("length", [1, 2, 8, T])
def test_matches_the_equations(layer, query, length):
    assert layer.count_params() == 2 * D * D + D
    query = query[:, :length]
    expected = reference(layer, query)
    np.testing.assert_allclose(layer(query), expected, atol=1e-5)
    # Where the length is not known when the graph is made.
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, layer(inputs))
    graph = tf.function(model, input_signature=[inputs_of_any_length()])
    np.testing.assert_allclose(graph(query), expected, atol=1e-5)


def inputs_of_any_length():
    return tf.TensorSpec((None, None, D), "float32")


def test_cached_equals_uncached(layer, query):
    expected = np.asarray(layer(query))
    cache = layer.init_cache(B, T)
    for t in range(T):
        output, cache = layer(query[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)
    # One vector for each hypothesis, at all lengths.
    assert {n: x.shape for n, x in cache.items()} == {"state": (B, 1, D)}


def test_in_a_block_the_state_is_not_rounded_either(query):
    block = TransformerDecoderBlock(
        1, 7, SimplerSimpleRecurrentUnit(), dtype="mixed_bfloat16"
    )
    memory = np.ones((B, 2, D), "float32")
    expected = keras.ops.cast(block(query, memory), "float32")
    unit = block.attention
    gates, candidates = (
        np.asarray(keras.ops.cast(dense(query), "float32"))
        for dense in (unit.forget_gate, unit.candidate)
    )
    cache, static = block.init_cache(B, T), block.static_cache(memory)
    state = np.zeros((B, 1, D), "float32")
    for t in range(T):
        now = slice(t, t + 1)
        output, cache = block(
            query[:, now], static_cache=static, cache=cache, cache_index=t
        )
        state = gates[:, now] * state
        state = state + (1 - gates[:, now]) * candidates[:, now]
        np.testing.assert_allclose(cache["state"], state, rtol=0, atol=1e-6)
        output = keras.ops.cast(output, "float32")
        np.testing.assert_allclose(output, expected[:, now], atol=0.02)


@pytest.mark.thorough
def test_xla_computes_the_gradient_at_any_length(layer, query):
    @tf.function(jit_compile=True, input_signature=[inputs_of_any_length()])
    def gradients(query):
        with tf.GradientTape() as tape:
            loss = keras.ops.sum(layer(query) ** 2)
        return tape.gradient(loss, layer.trainable_weights)

    with tf.GradientTape() as tape:
        loss = keras.ops.sum(layer(query) ** 2)
    expected = tape.gradient(loss, layer.trainable_weights)
    for found, gradient in zip(gradients(query), expected, strict=True):
        np.testing.assert_allclose(found, gradient, rtol=1e-4, atol=1e-4)


def test_refuses_to_look_ahead(layer, query):
    with pytest.raises(ValueError, match="use_causal_mask=False"):
        layer(query, use_causal_mask=False)
