"""What must be true of RelativePositionBias: buckets are those of T5's released
code, each has a number for each head, and every weight learns."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import MultiHeadAttention, RelativePositionBias

B, N, T, S, H = 2, 3, 5, 7, 11


def released_bucket(distance, bidirectional, num_buckets, max_distance):
    """`_relative_position_bucket` of T5's code, for one distance."""
    bucket, n = 0, -distance
    if bidirectional:
        num_buckets //= 2
        bucket += (n < 0) * num_buckets
        n = abs(n)
    else:
        n = max(n, 0)
    max_exact = num_buckets // 2
    if n < max_exact:
        return bucket + n
    share = np.log(np.float32(n) / max_exact) / math.log(
        max_distance / max_exact
    )
    large = max_exact + int(share * (num_buckets - max_exact))
    return bucket + min(large, num_buckets - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
# With (10, 160) some shares are exact numbers, as log(2) / log(32).
@pytest.mark.parametrize(
    "num_buckets, max_distance", [(32, 128), (6, 17), (10, 160)]
)
def test_buckets_are_those_of_the_released_code(
    bidirectional, num_buckets, max_distance
):
    options = (bidirectional, num_buckets, max_distance)
    layer = RelativePositionBias(num_buckets, max_distance, bidirectional)
    for distance in range(-300, 301):
        expected = released_bucket(distance, *options)
        assert layer.bucket(distance) == expected, distance


# To the left of the query, only 4 and more share the last of (6, 4).
@pytest.mark.parametrize("max_distance", [4, 5])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_logit_has_the_number_of_its_bucket_and_head(
    bidirectional, max_distance
):
    layer = RelativePositionBias(6, max_distance, bidirectional)
    layer.build((B, N, T, H))
    (table,) = layer.get_weights()
    assert table.shape == (6, N)
    logits = np.random.default_rng(0).normal(size=(B, N, T, S))
    logits = logits.astype("float32")
    distances = np.arange(S) - np.arange(T)[:, None]
    found = layer.add_to_logits(logits, None, distances)
    expected = logits.copy()
    for t in range(T):
        for s in range(S):
            expected[:, :, t, s] += table[layer.bucket(s - t)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_gradient_reaches_every_weight():
    tensors = np.random.default_rng(0).normal(size=(3, B, N, T, H))
    layer = RelativePositionBias(6, 5)
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(layer(*tensors.astype("float32")) ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(loss, layer.weights)[0])
    # A key after the query is at least one position after it.
    used = np.delete(gradient.numpy(), layer.bucket(1) - 1, axis=0)
    assert np.all(used != 0)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"num_buckets": 5}, "must be even.*num_buckets=5"),
        ({"num_buckets": 2}, "num_buckets=2"),
        ({"max_distance": 16}, "max_distance=16, num_buckets=32"),
    ],
)
def test_refuses_buckets_without_distances(options, words):
    with pytest.raises(ValueError, match=words):
        RelativePositionBias(**options)


def test_the_weights_of_a_model_that_shares_a_layer_are_saved(tmp_path):
    def make():
        shared = RelativePositionBias(4, 3)
        shared.build((None, 2, None, 4))
        inputs = keras.Input((None, 8))
        x = MultiHeadAttention(2, relative_position=shared)(inputs)
        x = MultiHeadAttention(2, relative_position=shared)(x)
        return keras.Model(inputs, x)

    model, again = make(), make()
    model.save_weights(tmp_path / "model.weights.h5")
    again.load_weights(tmp_path / "model.weights.h5")
    x = np.random.default_rng(0).normal(size=(1, 3, 8)).astype("float32")
    np.testing.assert_array_equal(model(x), again(x))
