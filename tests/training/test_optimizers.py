"""What must be true of the optimizers.

* the factor multiplies the rate of any schedule, and of a number
* Nesterov makes the updates of the classic form, one momentum ahead
* AdamW does not decay vectors
* Muon makes the updates of kernels orthogonal, and Adam's of other weights,
  those of embedding layers and weight-normalized ones among them
"""

import math

import keras
import numpy as np
import pytest

from keras_deepnmt import create_model, layers, models
from keras_deepnmt.training.optimizers import Adam, AdamW, Muon, Nesterov
from keras_deepnmt.training.schedules import Constant, WarmUp


@pytest.mark.parametrize("rate", [0.5, WarmUp(Constant(1.0), 2)])
def test_the_factor_multiplies_the_rate(rate):
    optimizer = Adam(rate)
    assert float(optimizer.learning_rate) == 0.5
    optimizer.rate_factor.assign(0.125)
    assert float(optimizer.learning_rate) == 0.0625


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_numbers_that_are_not_finite_or_negative_are_refused(wrong):
    calls = {
        "learning_rate": lambda: Nesterov(wrong),
        "beta_2": lambda: Adam(0.1, beta_2=wrong),
        "weight_decay": lambda: AdamW(0.1, weight_decay=wrong),
        "global_clipnorm": lambda: Adam(0.1, global_clipnorm=wrong),
    }
    for name, call in calls.items():
        message = f"`{name}` must be finite and not negative. .*{name}={wrong}"
        with pytest.raises(ValueError, match=message):
            call()


def test_the_rate_itself_can_still_be_set():
    optimizer = Adam(0.5)
    optimizer.rate_factor.assign(0.5)
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.125


def gradient(weights):
    """Of a bowl that is steeper in one direction."""
    return np.array([1.0, 5.0]) * weights


def walk(optimizer, start, factors):
    """The weights after each update, with a factor on the rate of each."""
    variable = keras.Variable(np.array(start, "float32"))
    optimizer.build([variable])
    found = []
    for factor in factors:
        optimizer.rate_factor.assign(factor)
        slope = gradient(keras.ops.convert_to_numpy(variable))
        optimizer.apply([keras.ops.convert_to_tensor(slope, "float32")])
        found.append(keras.ops.convert_to_numpy(variable).copy())
    return np.array(found)


def test_nesterov_is_the_classic_path_seen_ahead_by_the_momentum():
    rate, momentum, start = 0.03, 0.9, [1.0, -2.0]
    factors = [1.0, 1.0, 0.1, 0.1, 0.01]
    classic, velocity, expected = np.array(start), np.zeros(2), []
    for factor in factors:
        slope = gradient(classic + momentum * velocity)
        velocity = momentum * velocity - rate * factor * slope
        classic = classic + velocity
        expected.append(classic + momentum * velocity)
    found = walk(Nesterov(rate, momentum), start, factors)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_nesterov_survives_serialization():
    optimizer = Nesterov(Constant(0.25), momentum=0.75)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is Nesterov and again.nesterov
    assert again.momentum == 0.75


def test_the_decay_spares_vectors():
    matrix = keras.Variable(np.full((2, 3), 8.0, "float32"))
    vector = keras.Variable(np.full((3,), 8.0, "float32"))
    optimizer = AdamW(0.5, weight_decay=0.25)
    optimizer.build([matrix, vector])
    optimizer.rate_factor.assign(0.5)
    optimizer.apply([keras.ops.zeros((2, 3)), keras.ops.zeros((3,))])
    # The decay follows the rate, factor included: 8 * (1 - 0.25 * 0.25).
    np.testing.assert_allclose(np.array(matrix), 7.5)
    np.testing.assert_allclose(np.array(vector), 8.0)


def test_the_decay_spares_what_the_user_excludes_and_vectors():
    def variable(name, *shape):
        return keras.Variable(np.full(shape, 8.0, "float32"), name=name)

    listed, named = variable("first", 2, 3), variable("second", 2, 3)
    vector, other = variable("third", 3), variable("fourth", 2, 3)
    optimizer = AdamW(0.5, weight_decay=0.25)
    optimizer.exclude_from_weight_decay([listed], ["second"])
    weights = [listed, named, vector, other]
    optimizer.build(weights)
    optimizer.apply([keras.ops.zeros(weight.shape) for weight in weights])
    means = [float(np.mean(weight)) for weight in weights]
    assert means == [8.0, 8.0, 8.0, 7.0]


class Weights(keras.layers.Layer):
    """Weights of a shape each, named as those of layers are."""

    def __init__(self, shapes):
        super().__init__(name="weights")
        random = np.random.default_rng(1)
        for name, shape in shapes.items():
            weight = self.add_weight(shape=shape, name=name)
            weight.assign(random.normal(size=shape))


def updates(optimizer, layer, number=3):
    """Changes of the weights by the last of some random gradients."""
    random = np.random.default_rng(2)
    optimizer.build(layer.trainable_weights)
    for _ in range(number):
        before = layer.get_weights()
        slopes = [random.normal(size=x.shape) for x in before]
        optimizer.apply([keras.ops.cast(x, "float32") for x in slopes])
    after = layer.get_weights()
    return [new - old for new, old in zip(after, before, strict=True)]


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_muons_updates_of_kernels_have_equal_singular_values(shape):
    (change,) = updates(Muon(0.5), Weights({"kernel": shape}))
    values = np.linalg.svd(change, compute_uv=False)
    # Five iterations bring all singular values near 1.
    size = 0.5 * 0.2 * np.sqrt(max(shape))
    assert (0.65 * size < values).all() and (values < 1.25 * size).all()


def test_muons_updates_point_where_momentum_and_gradient_do():
    momentum, rate = 0.75, 0.5
    random = np.random.default_rng(2)
    slopes = [random.normal(size=(6, 4)) for _ in range(3)]
    sum_of_slopes = sum(
        momentum**age * slope for age, slope in enumerate(reversed(slopes))
    )
    u, _, v = np.linalg.svd(
        slopes[-1] + momentum * sum_of_slopes, full_matrices=False
    )
    optimizer = Muon(rate, momentum=momentum)
    (change,) = updates(optimizer, Weights({"kernel": (6, 4)}))
    expected = -rate * 0.2 * np.sqrt(6) * u @ v
    cosine = (change * expected).sum() / np.linalg.norm(change)
    assert cosine / np.linalg.norm(expected) > 0.98


def test_muon_updates_other_weights_as_adam_does():
    shapes = {
        "embeddings": (6, 4),
        "bias": (4,),
        "kernel": (2, 3, 4),
        "layer_logits": (3, 4),
    }
    found = updates(Muon(0.5, adam_beta_2=0.75, epsilon=1e-9), Weights(shapes))
    adam = Adam(0.5, beta_2=0.75, epsilon=1e-9)
    for one, other in zip(found, updates(adam, Weights(shapes)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def orthogonally_updated(model):
    """The paths of the weights for which Muon keeps no velocity of Adam."""
    optimizer = Muon(0.5)
    optimizer.build(model.trainable_variables)
    return {
        weight.path
        for weight, velocity in zip(
            model.trainable_variables, optimizer.adam_velocities, strict=True
        )
        if velocity is None
    }


def test_muon_reaches_the_linear_maps_of_blocks_and_no_embedding_layer():
    model = models.Transformer(
        *(11, 13, 8, 16, 2, 1, 1),
        source_embedding_layer=layers.RoleInteraction(5),
        target_embedding_layer=layers.RoleInteraction(5, bidirectional=False),
    )
    attention = {
        f"attention/{part}" for part in ("query", "key", "value", "output")
    }
    block = attention | {"feed_forward/intermediate", "feed_forward/output"}
    assert orthogonally_updated(model) == {
        *(f"encoder_block_1/{part}/kernel" for part in block),
        *(f"decoder_block_1/{part}/kernel" for part in block),
        *(f"decoder_block_1/cross_{part}/kernel" for part in attention),
    }


def test_muon_reaches_no_weight_normalized_map():
    model = create_model("conv_seq2seq_tiny", 11, 13)
    assert orthogonally_updated(model) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("jit_compile", [False, True])
def test_muon_trains_matrices_of_one_column_and_of_one_row(jit_compile):
    # The gates of a model that is not wider than `gate_reduction`.
    keras.utils.set_random_seed(1)
    attention = layers.HybridSelfAttention(2, window=1)
    model = models.Transformer(
        *(11, 13, 8, 16, 2, 1, 1), encoder_self_attention=attention
    )
    model.compile(Muon(0.5), jit_compile=jit_compile)
    gates = [
        weight
        for weight in model.trainable_variables
        if 1 in weight.shape and len(weight.shape) == 2
    ]
    assert {tuple(weight.shape) for weight in gates} == {(8, 1), (1, 8)}
    before = [keras.ops.convert_to_numpy(weight).copy() for weight in gates]
    random = np.random.default_rng(1)
    source, target, labels = random.integers(4, 11, (3, 2, 5), "int32")
    inputs = {"source_ids": source, "target_ids": target}
    model.fit(inputs, labels, epochs=1, verbose=0)
    size = 0.5 * 0.2 * math.sqrt(8)
    trained = set()
    for weight, old in zip(gates, before, strict=True):
        change = np.linalg.norm(keras.ops.convert_to_numpy(weight) - old)
        # A gate whose inner unit is negative for all tokens has no gradient.
        if change:
            trained.add(tuple(weight.shape))
            assert 0.65 * size < change < 1.25 * size
    assert trained == {(8, 1), (1, 8)}


def test_muon_decays_no_weights_unless_asked():
    layer = Weights({"kernel": (6, 4), "bias": (4,)})
    before = layer.get_weights()
    optimizer = Muon(0.5)
    optimizer.build(layer.trainable_weights)
    optimizer.apply([keras.ops.zeros((6, 4)), keras.ops.zeros((4,))])
    for new, old in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(new, old)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is Muon
    assert again.get_config() == optimizer.get_config()
