"""What must be true of SinusoidalPositionEncoding: the waves are those of
Section 3.5 in tensor2tensor's order, and a start index shifts them."""

import math

import numpy as np
import pytest

from keras_deepnmt.layers import SinusoidalPositionEncoding

B, T, D = 3, 11, 14


def reference(max_wavelength, start=0):
    half = D // 2
    waves = np.zeros((T, D))
    for t in range(T):
        for i in range(half):
            angle = (t + start) / max_wavelength ** (i / (half - 1))
            waves[t, i] = math.sin(angle)
            waves[t, i + half] = math.cos(angle)
    return waves


@pytest.mark.parametrize("max_wavelength", [10_000.0, 17.0])
def test_matches_the_equation(max_wavelength):
    inputs = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
    layer = SinusoidalPositionEncoding(max_wavelength)
    expected = inputs + reference(max_wavelength)
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)


def test_far_positions_keep_their_accuracy():
    zeros = np.zeros((1, T, D), "float32")
    layer = SinusoidalPositionEncoding()
    np.testing.assert_allclose(
        layer(zeros, start_index=1000)[0],
        reference(10_000.0, 1000),
        atol=2e-4,
    )


def test_one_step_equals_its_place_in_the_whole():
    inputs = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
    layer = SinusoidalPositionEncoding()
    whole = np.asarray(layer(inputs))
    for t in range(T):
        step = layer(inputs[:, t : t + 1], start_index=t)
        np.testing.assert_allclose(step, whole[:, t : t + 1], atol=1e-6)


def test_a_position_may_be_an_integer_of_64_bits():
    zeros, layer = np.zeros((1, T, D), "float32"), SinusoidalPositionEncoding()
    np.testing.assert_array_equal(
        layer(zeros, start_index=np.int64(3)), layer(zeros, start_index=3)
    )


def test_has_no_parameters():
    layer = SinusoidalPositionEncoding()
    layer(np.zeros((B, T, D), "float32"))
    assert layer.count_params() == 0


def test_half_precision_inputs_get_waves_made_in_float32():
    layer = SinusoidalPositionEncoding(dtype="bfloat16")
    output = layer(np.zeros((1, T, D), "float32"), start_index=300)
    np.testing.assert_allclose(
        np.asarray(output).astype("float32")[0],
        reference(10_000.0, 300),
        atol=1e-2,
    )


def test_refuses_an_odd_width():
    with pytest.raises(ValueError, match="even width.*7"):
        SinusoidalPositionEncoding()(np.zeros((B, T, 7), "float32"))
