"""What must be true of GradientScale: it returns its inputs unchanged and
scales their gradient; around a stack, one and its inverse scale the gradients
of the stack's weights and not that of the stack's input."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import GradientScale

B, T, D, U = 3, 5, 7, 11


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


@pytest.mark.parametrize("scale", [0.0, 0.125, 1.0, 30.0])
def test_inputs_pass_and_gradients_are_scaled(inputs, scale):
    x = tf.constant(inputs)
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = GradientScale(scale)(x)
        loss = keras.ops.sum(output**3)
    np.testing.assert_array_equal(output, inputs)
    expected = scale * 3 * inputs**2
    np.testing.assert_allclose(tape.gradient(loss, x), expected, rtol=1e-5)


def test_one_and_its_inverse_scale_the_weights_between_them_alone(inputs):
    stack = keras.layers.Dense(U)
    stack.build((None, None, D))

    def gradients(before, after):
        x = tf.constant(inputs)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = GradientScale(after)(stack(GradientScale(before)(x)))
            loss = keras.ops.sum(y**3)
        return tape.gradient(loss, [x, *stack.trainable_weights])

    still, scaled = gradients(1.0, 1.0), gradients(8.0, 0.125)
    np.testing.assert_allclose(scaled[0], still[0], rtol=1e-5)
    for one, other in zip(scaled[1:], still[1:], strict=True):
        np.testing.assert_allclose(one, 0.125 * other, rtol=1e-5)
