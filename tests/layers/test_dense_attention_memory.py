"""What must be true of DenseAttentionMemory: keys and values are those of
Equation 9 or 10; with one state both are the same; a position does not see the
others; the gradient into keys is scaled and that into embeddings is not; and
both variants have the size that the paper says they share."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import DenseAttentionMemory

B, S, D = 3, 5, 7
WIDTHS = (2, 11, 13)
each_variant = pytest.mark.parametrize("variant", [1, 2])


@pytest.fixture
def states():
    random = np.random.default_rng(0)
    return [
        random.normal(size=(B, S, width)).astype("float32") for width in WIDTHS
    ]


@pytest.fixture
def embeddings():
    return np.random.default_rng(1).normal(size=(B, S, D)).astype("float32")


def built(variant, widths=WIDTHS, width=D, **options):
    layer = DenseAttentionMemory(variant, **options)
    layer.build([(None, None, w) for w in widths], (None, None, width))
    random = np.random.default_rng(2)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def project(dense, x):
    return x @ np.asarray(dense.kernel) + np.asarray(dense.bias)


@each_variant
def test_matches_the_equations(states, embeddings, variant):
    layer = built(variant)
    found = layer(states, embeddings)
    if variant == 1:
        expected = [
            project(layer.projections[0], np.concatenate(states, axis=-1))
        ]
    else:
        expected = [
            project(layer.projections[i], states[i]) for i in range(len(states))
        ]
    assert len(layer.projections) == len(expected)
    assert [tuple(part.shape) for part in found] == layer.compute_output_shape(
        [state.shape for state in states], embeddings.shape
    )
    keys, values = (np.asarray(part) for part in found)
    assert keys.shape == values.shape == (B, len(expected), S, D)
    for i, key in enumerate(expected):
        np.testing.assert_allclose(keys[:, i], key, atol=1e-5)
        value = np.sqrt(0.5) * (key + embeddings)
        np.testing.assert_allclose(values[:, i], value, atol=1e-5)


def test_with_one_state_both_variants_are_one(states, embeddings):
    first, second = (
        np.asarray(built(variant, WIDTHS[:1])(states[:1], embeddings))
        for variant in (1, 2)
    )
    np.testing.assert_array_equal(first, second)


@each_variant
def test_a_position_does_not_see_the_others(states, embeddings, variant):
    layer = built(variant)
    expected = np.asarray(layer(states, embeddings))[..., 2:3, :]
    found = layer([state[:, 2:3] for state in states], embeddings[:, 2:3])
    np.testing.assert_allclose(found, expected, atol=1e-5)


@each_variant
def test_gradients_into_states_are_scaled_alone(states, embeddings, variant):
    def gradients(**options):
        layer = built(variant, **options)
        inputs = [tf.constant(x) for x in (*states, embeddings)]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            keys, values = layer(inputs[:-1], inputs[-1])
            loss = keras.ops.sum(keys**2) + keras.ops.sum(values**3)
        sources = [*layer.trainable_weights, *inputs]
        return loss, tape.gradient(loss, sources)

    loss, still = gradients()
    scaled_loss, scaled = gradients(gradient_scale=0.125)
    assert float(scaled_loss) == float(loss)
    for one, other in zip(scaled[:-1], still[:-1], strict=True):
        assert np.any(other)
        np.testing.assert_allclose(one, 0.125 * other, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scaled[-1], still[-1], rtol=1e-5)


def test_the_number_of_parameters_is_exact():
    # Four dense layers: their outputs, and what the first one reads.
    widths = [128] * 4 + [256]
    one, two = (built(variant, widths, 256) for variant in (1, 2))
    assert one.count_params() == 768 * 256 + 2 * 256
    # As many weights; each pair has lengths and biases of its own.
    assert two.count_params() == 768 * 256 + 5 * 2 * 256


def test_refuses_another_variant():
    with pytest.raises(ValueError, match="1, 2.*variant=3"):
        DenseAttentionMemory(3)
