"""What must be true of Dropout: outside training it does nothing; in training
it drops the share asked for, scales the rest, and draws each mask anew, with no
trace of position, neighbor or earlier call."""

import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import Dropout

B, T, D = 31, 37, 41


def mask(layer, shape=(B, T, D)):
    return np.asarray(layer(np.ones(shape, "float32"), training=True)) > 0


def correlation(one, other):
    one, other = one.ravel().astype(float), other.ravel().astype(float)
    return np.corrcoef(one, other)[0, 1]


def test_outside_training_it_is_nothing():
    inputs = np.random.default_rng(0).normal(size=(B, T, D))
    layer = Dropout(0.5, dtype="float64")
    np.testing.assert_array_equal(layer(inputs), inputs)
    np.testing.assert_array_equal(layer(inputs, training=False), inputs)
    nothing = Dropout(0.0, dtype="float64")
    np.testing.assert_array_equal(nothing(inputs, training=True), inputs)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_drops_the_share_asked_for_and_scales_the_rest(rate):
    inputs = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
    output = np.asarray(Dropout(rate, seed=1)(inputs, training=True))
    kept = output != 0
    # Five standard deviations of a binomial.
    slack = 5 * np.sqrt(rate * (1 - rate) / inputs.size)
    assert abs((1 - kept.mean()) - rate) < slack
    expected = inputs[kept] / (1 - rate)
    np.testing.assert_allclose(output[kept], expected, rtol=1e-5)


def test_masks_of_calls_layers_and_neighbors_are_independent():
    slack = 5 / np.sqrt(B * T * D)
    layer = Dropout(0.5, seed=1)
    masks = [mask(layer) for _ in range(4)]
    masks += [mask(Dropout(0.5, seed=seed)) for seed in (2, 3)]
    for number, one in enumerate(masks):
        for other in masks[:number]:
            assert abs(correlation(one, other)) < slack
        for axis in range(3):
            shifted = np.roll(one, 1, axis=axis)
            assert abs(correlation(one, shifted)) < slack


@pytest.mark.thorough
def test_every_position_is_dropped_equally_often():
    layer = Dropout(0.3, seed=1)
    share = np.mean([mask(layer, (5, 7)) for _ in range(400)], axis=0)
    assert np.all(np.abs(share - 0.7) < 5 * np.sqrt(0.3 * 0.7 / 400))


def test_a_seed_repeats_its_masks_and_none_does_not():
    np.testing.assert_array_equal(
        mask(Dropout(0.5, seed=7)), mask(Dropout(0.5, seed=7))
    )
    assert np.any(mask(Dropout(0.5)) != mask(Dropout(0.5)))


def test_tensors_together_lose_the_same_places():
    layer = Dropout(0.5, seed=1)
    one, other = layer(
        [np.ones((B, T, D)), np.full((B, T, D), 3.0)], training=True
    )
    np.testing.assert_allclose(other, 3.0 * np.asarray(one))
    assert 0 < np.count_nonzero(one) < B * T * D


def test_the_gradient_passes_where_the_activation_does():
    layer = Dropout(0.5, seed=1)
    inputs = tf.Variable(np.full((B, T), 3.0, "float32"))
    with tf.GradientTape() as tape:
        output = layer(inputs, training=True)
    gradient = tape.gradient(output, inputs).numpy()
    np.testing.assert_allclose(gradient, output.numpy() / 3.0)


def test_compiled_masks_are_those_of_eager_calls():
    layers = [Dropout(0.5, seed=7) for _ in range(2)]
    for layer in layers:
        layer.build((B, T, D))
    compiled = tf.function(
        lambda x: layers[0](x, training=True), jit_compile=True
    )
    ones = tf.ones((B, T, D))
    for _ in range(2):
        np.testing.assert_array_equal(
            compiled(ones), layers[1](ones, training=True)
        )


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_refuses_a_rate_outside_its_range(rate):
    with pytest.raises(ValueError, match=f"{rate}"):
        Dropout(rate)


def test_refuses_a_mask_that_is_shared_along_axes():
    with pytest.raises(ValueError, match="Use keras.layers.Dropout"):
        Dropout(0.5, noise_shape=(None, 1, D))
