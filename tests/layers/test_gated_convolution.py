"""What must be true of GatedConvolution: it is Equation 5; padding cannot be
seen and gives zeros; causal, it sees no later position and step by step gives
the same; dropout acts on its input, in training; its size is as stated."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import GatedConvolution

B, T, D, U = 3, 7, 5, 11
REAL = np.arange(T) < np.array([[7], [4], [1]])
PATHS = [("same", 3), ("causal", 3), ("same", 1), ("causal", 1), ("causal", 4)]
each_path = pytest.mark.parametrize("padding, kernel_size", PATHS)
each_causal = pytest.mark.parametrize("kernel_size", [1, 3, 4])


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


def built(padding="same", kernel_size=3, **options):
    layer = GatedConvolution(U, kernel_size, padding, **options)
    layer.build((B, T, D))
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def reference(layer, sentence):
    """One sentence `(T, D)` of real tokens."""
    kernel = np.asarray(layer.convolution.kernel)
    size = len(kernel)
    before = size - 1 if layer.padding == "causal" else (size - 1) // 2
    padded = np.zeros((len(sentence) + 2 * size, D))
    padded[before : before + len(sentence)] = sentence
    outputs = []
    for t in range(len(sentence)):
        y = sum(padded[t + k] @ kernel[k] for k in range(size))
        y = y + np.asarray(layer.convolution.bias)
        outputs.append(y[:U] / (1 + np.exp(-y[U:])))
    return np.array(outputs)


@each_path
def test_matches_the_equation(inputs, padding, kernel_size):
    layer = built(padding, kernel_size)
    found = np.asarray(layer(inputs, padding_mask=REAL))
    for row, length in enumerate(REAL.sum(axis=1)):
        expected = reference(layer, inputs[row, :length])
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-5)


@each_path
def test_without_a_mask_all_positions_are_real(inputs, padding, kernel_size):
    layer = built(padding, kernel_size)
    expected = [reference(layer, sentence) for sentence in inputs]
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)


@each_path
def test_padding_cannot_be_seen_and_gives_zeros(inputs, padding, kernel_size):
    layer = built(padding, kernel_size)
    expected = np.asarray(layer(inputs, padding_mask=REAL))
    assert not np.any(expected[~REAL])
    other = np.where(REAL[..., None], inputs, np.float32(1e3))
    other = np.pad(other, ((0, 0), (0, 4), (0, 0)), constant_values=-1e3)
    mask = np.pad(REAL, ((0, 0), (0, 4)))
    found = np.asarray(layer(other, padding_mask=mask))[:, :T]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_both_sides_are_seen(inputs):
    layer = built("same", 3)
    before = np.asarray(layer(inputs))
    inputs[:, 3] += 1.0
    changed = np.any(np.asarray(layer(inputs)) != before, axis=(0, 2))
    assert changed.tolist() == [2 <= t <= 4 for t in range(T)]


@each_causal
def test_the_future_cannot_be_seen(inputs, kernel_size):
    layer = built("causal", kernel_size)
    before = np.asarray(layer(inputs))
    inputs[:, 2] += 1.0
    changed = np.any(np.asarray(layer(inputs)) != before, axis=(0, 2))
    assert changed.tolist() == [2 <= t < 2 + kernel_size for t in range(T)]


@each_causal
def test_step_by_step_gives_the_same(inputs, kernel_size):
    layer = built("causal", kernel_size)
    expected = np.asarray(layer(inputs))
    cache = layer.init_cache(B, T)
    for t in range(T):
        found, cache = layer(inputs[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(found, expected[:, t : t + 1], atol=1e-5)


@each_causal
def test_the_cache_is_the_last_inputs_and_no_more(inputs, kernel_size):
    layer = built("causal", kernel_size)
    cache = layer.init_cache(B, 10 * T)
    for t in range(T):
        _, cache = layer(inputs[:, t : t + 1], cache=cache, cache_index=t)
    if kernel_size == 1:
        assert cache == {}
    else:
        kept = inputs[:, T - kernel_size + 1 :]
        np.testing.assert_array_equal(cache["inputs"], kept)


def test_steps_of_several_positions_give_the_same(inputs):
    layer = built("causal", 4)
    expected = np.asarray(layer(inputs))
    cache = layer.init_cache(B, T)
    for start, end in ((0, 2), (2, 3), (3, T)):
        found, cache = layer(inputs[:, start:end], cache=cache)
        np.testing.assert_allclose(found, expected[:, start:end], atol=1e-5)


def test_dropout_acts_on_the_input_in_training_only(inputs):
    layer = built(kernel_size=1, dropout=0.5)
    still = np.asarray(layer(inputs))
    np.testing.assert_array_equal(layer(inputs, training=False), still)
    one = np.ones((1, 200, D), "float32")
    seen = np.asarray(layer(one, training=True))[0]
    # Five inputs are kept or not: no more than 32 outputs can be.
    assert 20 < len(np.unique(seen.round(4), axis=0)) <= 2**D


def test_dropout_starts_with_smaller_weights():
    deviations = []
    for dropout in (0.0, 0.75):
        layer = GatedConvolution(200, dropout=dropout)
        layer.build((None, None, 50))
        deviations.append(np.std(layer.convolution.kernel))
    np.testing.assert_allclose(deviations[1] / deviations[0], 0.5, rtol=0.03)


@pytest.mark.parametrize(
    "width, filters, number",
    [(D, U, 3 * D * 2 * U + 4 * U), (256, 128, 197_120)],
)
def test_the_number_of_parameters_is_exact(width, filters, number):
    layer = GatedConvolution(filters)
    layer.build((None, None, width))
    assert layer.count_params() == number


def test_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="'same', 'causal'.*padding='valid'"):
        GatedConvolution(U, padding="valid")
    with pytest.raises(ValueError, match="kernel_size=0"):
        GatedConvolution(U, kernel_size=0)
    with pytest.raises(ValueError, match="dropout=1.5"):
        GatedConvolution(U, dropout=1.5)
    with pytest.raises(ValueError, match='Pass padding="causal"'):
        built("same").init_cache(B, T)


def gradients_of_one_step(inputs):
    layer = built(dropout=0.5, name="layer")
    layer.dropout_layer.seed_generator.state.assign([3, 7])
    parts = [tf.constant(inputs[..., :2]), tf.constant(inputs[..., 2:])]
    with tf.GradientTape() as tape:
        tape.watch(parts)
        output = layer(parts, padding_mask=REAL, training=True)
        loss = keras.ops.sum(output**2)
    return tape.gradient(loss, [*parts, *layer.trainable_weights])


def test_the_backward_pass_makes_anew_what_was_dropped(inputs, monkeypatch):
    found = gradients_of_one_step(inputs)
    monkeypatch.setattr(keras, "remat", lambda function: function)
    expected = gradients_of_one_step(inputs)
    for mine, plain in zip(found, expected, strict=True):
        assert np.any(np.asarray(plain))
        np.testing.assert_allclose(mine, plain, atol=1e-5)


def test_inputs_may_lie_side_by_side(inputs):
    layer = built()
    expected = layer(inputs, padding_mask=REAL)
    parts = [inputs[..., :1], inputs[..., 1:4], inputs[..., 4:]]
    found = layer(parts, padding_mask=REAL)
    np.testing.assert_array_equal(found, expected)
    apart = GatedConvolution(U)
    assert apart(parts).shape == (B, T, U)
    assert apart.compute_output_shape([p.shape for p in parts]) == (B, T, U)
