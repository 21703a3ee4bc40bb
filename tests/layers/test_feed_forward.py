"""What must be true of FeedForward: it is Equation 2, a position on its own
gives what it gives among others, and its size is as stated."""

import numpy as np
import pytest

from keras_deepnmt.layers import FeedForward, MultiHeadAttention

B, T, D, F = 3, 5, 7, 11


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


def reference(inputs, w1, b1, w2, b2):
    return np.maximum(inputs @ w1 + b1, 0.0) @ w2 + b2


def test_matches_the_equation(inputs):
    layer = FeedForward(F)
    layer.build(inputs.shape)
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    expected = reference(inputs, *layer.get_weights())
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-4)


def test_the_activation_is_the_one_asked_for(inputs):
    layer = FeedForward(F, activation="linear")
    layer.build(inputs.shape)
    w1, b1, w2, b2 = layer.get_weights()
    expected = (inputs @ w1 + b1) @ w2 + b2
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)


def test_a_position_does_not_see_the_others(inputs):
    layer = FeedForward(F)
    expected = np.asarray(layer(inputs))[:, 2:3]
    np.testing.assert_allclose(layer(inputs[:, 2:3]), expected, atol=1e-6)


def test_the_number_of_parameters_is_exact(inputs):
    layer = FeedForward(F)
    layer.build(inputs.shape)
    assert layer.count_params() == 2 * D * F + F + D


def test_the_two_kernels_do_not_start_equal():
    layer = FeedForward(D, kernel_initializer="random_normal")
    layer.build((B, T, D))
    w1, _, w2, _ = layer.get_weights()
    assert not np.allclose(w1, w2)


@pytest.mark.parametrize(
    "kind, first",
    [(FeedForward, "intermediate"), (MultiHeadAttention, "query_projection")],
)
def test_a_function_serves_as_an_initializer(kind, first):
    def twos(shape, dtype=None):
        return np.full(shape, 2.0, dtype)

    layer = kind(2, kernel_initializer=twos, bias_initializer=twos)
    layer.build((1, 3, 4))
    for weight in getattr(layer, first).weights:
        np.testing.assert_array_equal(weight, np.full(weight.shape, 2.0))
