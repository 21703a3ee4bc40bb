"""What must be true of ResidualConnection: post-norm is LN(x + y), pre-norm
is x + y around LN(x), also in functional models of Keras, and dropout falls on
the sub-layer's output only."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import ResidualConnection

B, T, D = 3, 5, 7


@pytest.fixture
def sides():
    random = np.random.default_rng(0)
    return [random.normal(size=(B, T, D)).astype("float32") for _ in range(2)]


def built(**kwargs):
    layer = ResidualConnection(**kwargs)
    layer.build((B, T, D), (B, T, D))
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def normalize(layer, x):
    gain, bias = layer.get_weights()
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    epsilon = layer.layer_norm_epsilon
    return (x - mean) / np.sqrt(variance + epsilon) * gain + bias


def test_post_norm_normalises_the_sum(sides):
    layer = built(normalize_first=False)
    np.testing.assert_array_equal(layer.before(sides[0]), sides[0])
    np.testing.assert_allclose(
        layer(*sides), normalize(layer, sides[0] + sides[1]), atol=1e-5
    )


def test_pre_norm_normalises_what_the_sublayer_reads(sides):
    layer = built(normalize_first=True)
    np.testing.assert_allclose(
        layer.before(sides[0]), normalize(layer, sides[0]), atol=1e-5
    )
    np.testing.assert_allclose(layer(*sides), sides[0] + sides[1], atol=1e-6)


def test_what_the_sublayer_reads_may_be_asked_for_first(sides):
    layer = ResidualConnection(normalize_first=True)
    found = layer.before(sides[0])
    np.testing.assert_allclose(found, normalize(layer, sides[0]), atol=1e-5)
    np.testing.assert_allclose(layer(*sides), sides[0] + sides[1], atol=1e-6)


def test_a_functional_model_of_pre_norm_is_saved_and_cloned(sides, tmp_path):
    states = inputs = keras.Input((None, D))
    for number in (1, 2):
        residual = ResidualConnection(normalize_first=True)
        sublayer = keras.layers.Dense(D, name=f"sublayer_{number}")
        states = residual(states, sublayer(residual.before(states)))
    model = keras.Model(inputs, states)
    model.compile("sgd", "mse", run_eagerly=True)
    model.train_on_batch(*sides)
    assert len(model.weights) == 8
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for other in (loaded, clone):
        np.testing.assert_array_equal(other(sides[0]), model(sides[0]))


def test_post_norm_needs_the_output_of_the_sublayer(sides):
    with pytest.raises(ValueError, match="Received: outputs=None"):
        built()(sides[0])


def test_epsilon_is_used():
    layer = built(layer_norm_epsilon=0.5)
    inputs = np.random.default_rng(2).normal(size=(B, T, D)) * 0.1
    expected = normalize(layer, 2 * inputs)
    np.testing.assert_allclose(layer(inputs, inputs), expected, atol=1e-5)


def test_dropout_leaves_the_input_alone(sides):
    layer = built(dropout=0.99, normalize_first=True)
    total = np.asarray(layer(*sides, training=True))
    left = np.isclose(total, sides[0])
    assert left.mean() > 0.8
    np.testing.assert_allclose(
        (total - sides[0])[~left], (sides[1] * 100)[~left], rtol=1e-3
    )


def test_the_number_of_parameters_is_exact():
    assert built().count_params() == 2 * D


def test_refuses_a_dropout_of_one():
    with pytest.raises(ValueError, match="dropout=1.0"):
        ResidualConnection(dropout=1.0)
