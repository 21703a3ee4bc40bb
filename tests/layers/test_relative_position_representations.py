"""What must be true of RelativePositionRepresentations: it is Equations 3 to 5
of Shaw et al. (2018), and every weight learns."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import RelativePositionRepresentations

B, N, T, S, H, K = 2, 3, 5, 7, 11, 2


@pytest.fixture
def tensors():
    random = np.random.default_rng(0)
    return [
        random.normal(size=(B, N, length, H)).astype("float32")
        for length in (T, S, S)
    ]


def reference(layer, queries, keys, values):
    key_table, value_table = layer.get_weights()
    context = np.zeros((B, N, T, H))
    for b, n, t in np.ndindex(B, N, T):
        rows = [max(-K, min(K, s - t)) + K for s in range(S)]  # Eq. 5
        logits = np.array(
            [
                queries[b, n, t] @ (keys[b, n, s] + key_table[rows[s]])
                for s in range(S)
            ]
        )
        weights = np.exp(logits / np.sqrt(H))  # Eq. 4
        weights /= weights.sum()
        for s in range(S):  # Eq. 3
            vector = values[b, n, s] + value_table[rows[s]]
            context[b, n, t] += weights[s] * vector
    return context


def test_matches_the_equations(tensors):
    layer = RelativePositionRepresentations(K)
    layer.build(tensors[0].shape)
    assert layer.count_params() == 2 * (2 * K + 1) * H
    expected = reference(layer, *tensors)
    np.testing.assert_allclose(layer(*tensors), expected, atol=1e-5)


def test_gradient_reaches_every_weight(tensors):
    layer = RelativePositionRepresentations(K)
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(layer(*tensors) ** 2)
    for gradient in tape.gradient(loss, layer.trainable_weights):
        gradient = tf.convert_to_tensor(gradient)
        assert np.all(np.any(gradient.numpy() != 0, axis=-1))


def test_refuses_a_distance_below_1():
    with pytest.raises(ValueError, match="max_distance=0"):
        RelativePositionRepresentations(0)
