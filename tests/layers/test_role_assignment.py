"""What must be true of RoleAssignment: dense roles lie between -1 and 1, soft
ones are a distribution, one-hot ones are its likeliest role; in training these
are drawn from it, the harder the lower the temperature, which does not train;
and half precision does not shift a distribution."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import RoleAssignment

B, S, D, R, U = 3, 7, 5, 11, 2


@pytest.fixture
def inputs():
    random = np.random.default_rng(0)
    return random.normal(size=(B, S, D)).astype("float32")


def built(assignment, seed=1, **options):
    layer = RoleAssignment(R, assignment, role_units=U, **options)
    layer.build((B, S, D))
    random = np.random.default_rng(seed)
    for weight in layer.trainable_weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def softmax(x):
    exponents = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponents / exponents.sum(axis=-1, keepdims=True)


def probabilities(layer, inputs):
    dense = np.asarray(layer.dense_roles(layer.encoder(inputs)))
    return softmax(dense @ np.asarray(layer.role_logits.kernel))


def test_dense_roles_meet_their_equation(inputs):
    layer = built("dense")
    hidden = np.asarray(layer.encoder(inputs))
    kernel, bias = (np.asarray(w) for w in layer.dense_roles.weights)
    roles = np.asarray(layer(inputs))
    np.testing.assert_allclose(
        roles, np.tanh(hidden @ kernel + bias), rtol=1e-5
    )
    assert np.all(np.abs(roles) < 1) and np.any(roles < 0)


def test_soft_roles_are_a_distribution(inputs):
    layer = built("softmax")
    roles = np.asarray(layer(inputs))
    assert np.all(roles > 0)
    np.testing.assert_allclose(roles.sum(axis=-1), 1.0, atol=1e-6)
    np.testing.assert_allclose(roles, probabilities(layer, inputs), atol=1e-5)


def test_one_hot_roles_are_the_likeliest(inputs):
    layer, soft = built("onehot"), built("softmax")
    roles = np.asarray(layer(inputs))
    assert set(np.unique(roles)) == {0.0, 1.0}
    assert np.all(roles.sum(axis=-1) == 1)
    likeliest = np.asarray(soft(inputs)).argmax(axis=-1)
    np.testing.assert_array_equal(roles.argmax(axis=-1), likeliest)
    # More than one role is played, or this would prove little.
    assert len(set(likeliest.ravel())) > 1


def test_in_training_roles_are_drawn_from_the_distribution(inputs):
    layer = built("onehot")
    expected = probabilities(layer, inputs[:1, :1])[0, 0]
    repeated = np.repeat(inputs[:1, :1], 4_000, axis=0)
    drawn = np.asarray(layer(repeated, training=True))[:, 0]
    np.testing.assert_allclose(drawn.sum(axis=-1), 1.0, atol=1e-5)
    # Whatever the temperature, the largest is a draw from the distribution.
    share = np.bincount(drawn.argmax(axis=-1), minlength=R) / 4_000
    slack = 5 * np.sqrt(expected * (1 - expected) / 4_000)
    assert np.all(np.abs(share - expected) < slack)
    assert expected.max() < 0.9
    again = np.asarray(layer(repeated, training=True))[:, 0]
    assert np.any(again != drawn)


def test_the_temperature_decides_how_hard_a_draw_is(inputs):
    layer = built("onehot")
    inputs = np.tile(inputs, (400, 1, 1))  # enough draws for a stable mean
    (temperature,) = layer.non_trainable_weights
    assert temperature.name == "temperature" and temperature.shape == ()
    assert float(temperature) == 5.0
    largest = []
    for value in (50.0, 5.0, 0.5, 0.001):
        temperature.assign(value)
        roles = np.asarray(layer(inputs, training=True))
        largest.append(roles.max(axis=-1).mean())
    assert largest == sorted(largest)
    assert largest[0] < 2 / R and largest[-1] > 0.99
    for assignment in ("dense", "softmax"):
        assert not built(assignment).non_trainable_weights


def test_one_hot_roles_take_the_weights_of_soft_ones(inputs):
    soft, hard = built("softmax", seed=1), built("onehot", seed=2)
    pairs = zip(soft.trainable_weights, hard.trainable_weights, strict=True)
    for one, other in pairs:
        assert one.path.split("/")[1:] == other.path.split("/")[1:]
        other.assign(one)
    np.testing.assert_array_equal(
        np.asarray(hard(inputs)).argmax(axis=-1),
        np.asarray(soft(inputs)).argmax(axis=-1),
    )


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_keeps_the_temperature(inputs, dtype):
    layer = built("onehot", dtype=dtype)
    (temperature,) = layer.non_trainable_weights
    temperature.assign(5 * 0.9995)
    assert np.float32(temperature) == np.float32(5 * 0.9995)
    roles = layer(inputs, training=True)
    assert keras.backend.standardize_dtype(roles.dtype) == layer.compute_dtype
    sums = np.asarray(tf.cast(roles, "float32")).sum(axis=-1)
    np.testing.assert_allclose(sums, 1.0, atol=0.02)


def test_the_number_of_parameters_is_exact():
    # 256 wide, 32 roles: encoder, W and b, and the matrix of the softmax.
    counts = []
    for bidirectional in (True, False):
        layer = RoleAssignment(32, "softmax", bidirectional=bidirectional)
        layer.build((None, None, 256))
        counts.append(layer.count_params())
    assert counts == [73_984 + 2_080 + 1_024, 36_992 + 1_056 + 1_024]
    # The temperature is one more number.
    extra = built("onehot").count_params() - built("softmax").count_params()
    assert extra == 1
    assert built("softmax").count_params() - built("dense").count_params() == (
        R * R
    )


def test_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="assignment='hard'"):
        RoleAssignment(R, "hard")
    with pytest.raises(ValueError, match="num_roles=1"):
        RoleAssignment(1)
