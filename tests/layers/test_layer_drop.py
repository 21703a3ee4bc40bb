"""What must be true of LayerDrop: in training a batch gets a block's input with
the given probability, else its output, unscaled; in inference always the
output; and the gradient goes where the value came from."""

import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import LayerDrop

B, T, D = 3, 5, 7
INPUTS, OUTPUTS = np.full((2, B, T, D), [[[[2.0]]], [[[3.0]]]], "float32")


def test_a_batch_keeps_one_of_both_as_a_whole():
    layer = LayerDrop(0.25, seed=1)
    means = [
        float(np.mean(layer(INPUTS, OUTPUTS, training=True)))
        for _ in range(400)
    ]
    assert set(means) == {2.0, 3.0}
    assert means.count(2.0) / 400 == pytest.approx(0.25, abs=0.06)


def test_in_inference_every_block_counts():
    layer = LayerDrop(0.999)
    for options in ({}, {"training": False}):
        np.testing.assert_array_equal(layer(INPUTS, OUTPUTS, **options), 3.0)


def test_at_a_rate_of_zero_nothing_is_skipped_or_drawn():
    layer = LayerDrop(0.0)
    np.testing.assert_array_equal(layer(INPUTS, OUTPUTS, training=True), 3.0)
    assert layer.variables == []


@pytest.mark.parametrize(("rate", "skips"), [(1e-9, False), (1 - 1e-6, True)])
def test_the_gradient_goes_to_what_was_kept(rate, skips):
    layer = LayerDrop(rate, seed=1)
    both = tf.constant(INPUTS), tf.constant(OUTPUTS)
    with tf.GradientTape() as tape:
        tape.watch(both)
        total = tf.reduce_sum(layer(*both, training=True))
    found = [
        float(np.mean(gradient)) for gradient in tape.gradient(total, both)
    ]
    assert found == [float(skips), float(not skips)]


def test_refuses_a_rate_of_one():
    with pytest.raises(ValueError, match="rate=1.0"):
        LayerDrop(1.0)
