"""What must be true of WeightNormalizedDense: it is its equation; it starts as
its direction, with the variance of the released code; only the direction of
`direction` and the size of `gain` matter; and its size is as stated."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import WeightNormalizedDense

B, T, D, U = 3, 5, 7, 11


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


def built(width=D, units=U, **options):
    layer = WeightNormalizedDense(units, **options)
    layer.build((None, None, width))
    return layer


def shuffled(layer):
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def reference(inputs, direction, gain, bias):
    outputs = np.zeros((*inputs.shape[:-1], U))
    for u in range(U):
        v = direction[:, u]
        w = gain[u] * v / np.sqrt(np.sum(v**2))
        outputs[..., u] = inputs @ w + bias[u]
    return outputs


def test_matches_the_equation(inputs):
    layer = shuffled(built())
    expected = reference(inputs, *layer.get_weights())
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)
    np.testing.assert_allclose(layer(inputs[:, 2]), expected[:, 2], atol=1e-5)


def test_without_bias_zero_gives_zero():
    layer = shuffled(built(use_bias=False))
    assert not np.any(np.asarray(layer(np.zeros((B, D), "float32"))))
    assert [weight.name for weight in layer.weights] == ["direction", "gain"]


def test_starts_as_its_direction_without_bias():
    layer = built()
    direction, _, bias = layer.get_weights()
    np.testing.assert_allclose(layer.kernel, direction, rtol=1e-6)
    assert not np.any(bias)


@pytest.mark.parametrize("dropout", [0.0, 0.75])
def test_starts_with_the_variance_of_the_released_code(dropout):
    layer = built(200, 300, dropout=dropout)
    expected = np.sqrt((1 - dropout) / 200)
    # 60,000 draws: their deviation is known to 0.3 %.
    np.testing.assert_allclose(np.std(layer.kernel), expected, rtol=0.02)


def test_dropout_is_not_applied(inputs):
    layer = built(dropout=0.5)
    np.testing.assert_array_equal(layer(inputs, training=True), layer(inputs))


def test_the_gain_is_the_length_of_the_weights():
    layer = shuffled(built())
    lengths = np.linalg.norm(layer.kernel, axis=0)
    np.testing.assert_allclose(lengths, np.abs(layer.gain), rtol=1e-5)


def test_the_length_of_the_direction_does_not_matter(inputs):
    layer = shuffled(built())
    before = layer(inputs)
    factors = np.arange(1.0, U + 1)
    layer.direction.assign(layer.direction * factors)
    np.testing.assert_allclose(layer(inputs), before, atol=1e-5)


def test_the_direction_learns_to_turn_and_not_to_grow(inputs):
    layer = shuffled(built())
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(layer(inputs) ** 3)
    gradient = tape.gradient(loss, layer.trainable_weights)[0]
    along = np.sum(np.asarray(gradient) * layer.direction, axis=0)
    size = np.linalg.norm(gradient, axis=0)
    assert np.all(size > 0.01)
    np.testing.assert_allclose(along / size, 0.0, atol=1e-4)


def test_a_direction_of_zeros_stays_finite(inputs):
    layer = shuffled(built())
    layer.direction.assign(np.zeros((D, U)))
    bias = np.broadcast_to(layer.bias, (B, T, U))
    np.testing.assert_array_equal(layer(inputs), bias)


@pytest.mark.parametrize(
    "width, units, number", [(D, U, D * U + 2 * U), (256, 128, 33_024)]
)
def test_the_number_of_parameters_is_exact(width, units, number):
    assert built(width, units).count_params() == number
    without_bias = built(width, units, use_bias=False)
    assert without_bias.count_params() == number - units


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_refuses_a_dropout_that_is_no_probability(dropout):
    with pytest.raises(ValueError, match=f"dropout={dropout}"):
        WeightNormalizedDense(U, dropout=dropout)
