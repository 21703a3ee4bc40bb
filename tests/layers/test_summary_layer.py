"""What must be true of SummaryLayer: it is its equation, of an encoder and of a
decoder; it keeps the variance; without a projection it is a residual; and its
size is as stated."""

import numpy as np
import pytest

from keras_deepnmt.layers import SummaryLayer

B, T, D, U = 3, 5, 7, 11


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


@pytest.fixture
def outputs():
    random = np.random.default_rng(1)
    return [random.normal(size=(B, T, U)).astype("float32") for _ in range(3)]


def built(width=D, **options):
    layer = SummaryLayer(U, **options)
    layer.build((B, T, width))
    random = np.random.default_rng(2)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def project(dense, x):
    return x @ np.asarray(dense.kernel) + np.asarray(dense.bias)


def test_matches_the_encoder_s_equation(inputs, outputs):
    layer = built()
    old = project(layer.projection, inputs)
    expected = np.sqrt(0.5) * (outputs[0] + old)
    np.testing.assert_allclose(layer(inputs, outputs[:1]), expected, atol=1e-5)


def test_matches_the_decoder_s_equation(inputs, outputs):
    layer = built()
    new, attention, _ = outputs
    old = project(layer.projection, inputs)
    expected = np.sqrt(0.5) * (old + np.sqrt(0.5) * (attention + new))
    found = layer(inputs, [attention, new])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_without_a_projection_it_is_a_residual(outputs):
    layer = SummaryLayer(U, use_projection=False)
    old, *new = outputs
    expected = np.sqrt(0.5) * (old + np.sqrt(0.5) * (new[0] + new[1]))
    np.testing.assert_allclose(layer(old, new), expected, atol=1e-5)
    assert not layer.weights


def test_it_starts_by_keeping_the_variance():
    random = np.random.default_rng(3)
    old, *new = (random.normal(size=(1, 300, width)) for width in (90, 70, 70))
    found = SummaryLayer(70)(old, new)
    np.testing.assert_allclose(np.var(found), 1.0, rtol=0.05)


def test_a_position_does_not_see_the_others(inputs, outputs):
    layer = built()
    expected = np.asarray(layer(inputs, outputs))[:, 2:3]
    found = layer(inputs[:, 2:3], [output[:, 2:3] for output in outputs])
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "width, units, number",
    [(D, U, D * U + 2 * U), (672, 192, 129_408)],
)
def test_the_number_of_parameters_is_exact(width, units, number):
    layer = SummaryLayer(units)
    layer.build((None, None, width))
    assert layer.count_params() == number
    assert layer.compute_output_shape((B, T, width)) == (B, T, units)


def test_refuses_other_widths(inputs, outputs):
    with pytest.raises(ValueError, match="units=5 and outputs.*11, 11, 11"):
        SummaryLayer(5)(inputs, outputs)
    with pytest.raises(ValueError, match="width 7. Pass use_projection=True"):
        SummaryLayer(U, use_projection=False)(inputs, outputs)
