"""What must be true of WeightNormalizedConv1D: it is its equation, with zeros
where its padding puts them; causal, it sees no later input; it starts as its
direction, with the variance of the released code; and its size is as stated."""

import numpy as np
import pytest

from keras_deepnmt.layers import WeightNormalizedConv1D

B, T, D, U = 3, 7, 5, 11
BEFORE = {
    ("valid", 3): 0,
    ("same", 3): 1,
    ("causal", 3): 2,
    ("valid", 1): 0,
    ("same", 4): 1,
    ("causal", 4): 3,
}
each_padding = pytest.mark.parametrize("padding, kernel_size", list(BEFORE))


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


def built(kernel_size=3, padding="valid", width=D, filters=U, **options):
    layer = WeightNormalizedConv1D(filters, kernel_size, padding, **options)
    layer.build((None, None, width))
    return layer


def shuffled(layer):
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def reference(inputs, before, num_outputs, direction, gain, bias):
    kernel = np.zeros_like(direction)
    for u in range(U):
        v = direction[..., u]
        kernel[..., u] = gain[u] * v / np.sqrt(np.sum(v**2))
    outputs = np.zeros((B, num_outputs, U)) + bias
    for t in range(num_outputs):
        for k in range(len(kernel)):
            if 0 <= t + k - before < T:
                outputs[:, t] += inputs[:, t + k - before] @ kernel[k]
    return outputs


@each_padding
def test_matches_the_equation(inputs, padding, kernel_size):
    layer = shuffled(built(kernel_size, padding))
    num_outputs = T - kernel_size + 1 if padding == "valid" else T
    expected = reference(
        inputs,
        BEFORE[padding, kernel_size],
        num_outputs,
        *layer.get_weights(),
    )
    found = layer(inputs)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert tuple(found.shape) == layer.compute_output_shape((B, T, D))
    open_shape = layer.compute_output_shape((None, None, D))
    assert open_shape == (None, None, U)


def test_one_position_at_a_time_is_a_projection(inputs):
    layer = shuffled(built(1))
    expected = inputs @ np.asarray(layer.kernel)[0] + np.asarray(layer.bias)
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)


@pytest.mark.parametrize("kernel_size", [1, 3, 4])
def test_causal_sees_the_past_alone(inputs, kernel_size):
    layer = shuffled(built(kernel_size, "causal"))
    before = np.asarray(layer(inputs))
    inputs[:, 2] += 1.0
    changed = np.any(np.asarray(layer(inputs)) != before, axis=(0, 2))
    assert changed.tolist() == [2 <= t < 2 + kernel_size for t in range(T)]


def test_starts_as_its_direction_without_bias():
    layer = built()
    direction, gain, bias = layer.get_weights()
    np.testing.assert_allclose(layer.kernel, direction, rtol=1e-6)
    lengths = np.sqrt(np.sum(direction**2, axis=(0, 1)))
    np.testing.assert_allclose(gain, lengths, rtol=1e-6)
    assert not np.any(bias)


@pytest.mark.parametrize("dropout", [0.0, 0.75])
def test_starts_with_the_variance_of_the_released_code(dropout):
    layer = built(3, width=50, filters=400, dropout=dropout)
    expected = np.sqrt(4 * (1 - dropout) / (3 * 50))
    np.testing.assert_allclose(np.std(layer.kernel), expected, rtol=0.02)


def test_the_gain_is_the_length_of_the_weights():
    layer = shuffled(built())
    lengths = np.sqrt(np.sum(np.square(layer.kernel), axis=(0, 1)))
    np.testing.assert_allclose(lengths, np.abs(layer.gain), rtol=1e-5)


@pytest.mark.parametrize(
    "kernel_size, width, features", [(3, D, U), (1, D, U), (3, 256, 128)]
)
def test_the_number_of_parameters_is_exact(kernel_size, width, features):
    # Twice as many filters as features: the other half are gates.
    layer = built(kernel_size, width=width, filters=2 * features)
    expected = kernel_size * width * 2 * features + 4 * features
    assert layer.count_params() == expected


@pytest.mark.parametrize(
    "options, message",
    [
        ({"padding": "full"}, "'valid', 'same', 'causal'.*padding='full'"),
        ({"kernel_size": 0}, "at least 1.*kernel_size=0"),
        ({"dropout": 1.0}, "dropout=1.0"),
    ],
)
def test_refuses_what_no_convolution_can_be(options, message):
    with pytest.raises(ValueError, match=message):
        WeightNormalizedConv1D(U, **{"kernel_size": 3, **options})
