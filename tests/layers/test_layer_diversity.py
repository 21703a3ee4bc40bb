"""What must be true of LayerDiversity: it is Equations 9 and 10 over the real
positions, 0 for parallel states and 1 for orthogonal ones, more diverse layers
lower the loss, and it returns the last state unchanged."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import LayerDiversity
from keras_deepnmt.layers.layer_diversity import diversity

B, S, D, L = 3, 5, 7, 4


@pytest.fixture
def layer_states():
    random = np.random.default_rng(0)
    return [random.normal(size=(B, S, D)).astype("float32") for _ in range(L)]


@pytest.fixture
def padding_mask():
    return np.arange(S) < np.array([[5], [3], [1]])


def reference(layer_states, padding_mask):
    """Equation 10 in loops: the mean of D over adjacent layers."""
    distances = []
    for lower, upper in zip(layer_states[:-1], layer_states[1:], strict=True):
        values = []
        for b, s in zip(*np.nonzero(padding_mask), strict=True):
            x, y = lower[b, s], upper[b, s]
            cosine = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
            values.append(1 - cosine**2)
        distances.append(np.mean(values))
    return np.mean(distances)


def loss_of(layer_states, padding_mask=None, **options):
    layer = LayerDiversity(**options)
    layer(layer_states, padding_mask=padding_mask)
    (loss,) = layer.losses
    return float(loss)


def test_matches_the_equation(layer_states, padding_mask):
    expected = reference(layer_states, padding_mask)
    assert loss_of(layer_states, padding_mask) == pytest.approx(-expected, 1e-5)
    assert loss_of(
        layer_states, padding_mask, weight=0.3, reduction="sum"
    ) == pytest.approx(-0.3 * expected * padding_mask.sum(), 1e-5)


def test_all_positions_are_real_without_a_mask(layer_states):
    every = np.ones((B, S), bool)
    assert loss_of(layer_states) == loss_of(layer_states, every)


def test_it_is_zero_if_each_state_is_a_multiple_of_the_one_below(layer_states):
    multiples = [layer_states[0] * factor for factor in (1.0, -2.0, 0.5)]
    np.testing.assert_allclose(diversity(multiples), 0.0, atol=1e-6)


def test_it_is_one_if_adjacent_layers_are_orthogonal(layer_states):
    even = np.arange(D) % 2 == 0
    states = [
        np.where(even if number % 2 else ~even, state, 0.0)
        for number, state in enumerate(layer_states)
    ]
    np.testing.assert_allclose(diversity(states), 1.0, atol=1e-6)


def test_it_lies_between_zero_and_one_at_every_position(layer_states):
    values = np.asarray(diversity(layer_states))
    assert values.shape == (B, S)
    assert values.min() > 0.0 and values.max() < 1.0
    # Not a matter of length.
    longer = [state * 10.0**n for n, state in enumerate(layer_states)]
    np.testing.assert_allclose(diversity(longer), values, atol=1e-5)


def test_padding_counts_nowhere(layer_states, padding_mask):
    changed = [
        np.where(padding_mask[..., None], state, 1e4 * number)
        for number, state in enumerate(layer_states)
    ]
    wider = [np.pad(state, ((0, 2), (0, 3), (0, 0))) for state in changed]
    wider_mask = np.pad(padding_mask, ((0, 2), (0, 3)))
    for reduction in ("mean", "sum"):
        before = loss_of(layer_states, padding_mask, reduction=reduction)
        after = loss_of(wider, wider_mask, reduction=reduction)
        assert after == pytest.approx(before, 1e-6)


def test_a_batch_of_padding_adds_nothing(layer_states):
    assert loss_of(layer_states, np.zeros((B, S), bool)) == 0.0


def test_more_diverse_layers_lower_the_loss(layer_states):
    below, above = layer_states[:2]
    losses = [
        loss_of([below, below + share * above]) for share in (0.0, 0.3, 0.9)
    ]
    assert losses[0] == pytest.approx(0.0, abs=1e-6)
    assert losses[0] > losses[1] > losses[2]


def test_states_of_half_precision_do_not_overflow(layer_states):
    half = [(300.0 * state).astype("float16") for state in layer_states]
    wide = [state.astype("float32") for state in half]
    assert loss_of(half, dtype="float16") == pytest.approx(loss_of(wide), 1e-5)


def test_the_last_state_comes_back_as_it_was(layer_states):
    layer = LayerDiversity()
    np.testing.assert_array_equal(layer(layer_states), layer_states[-1])


def test_a_single_state_adds_no_loss(layer_states):
    layer = LayerDiversity()
    np.testing.assert_array_equal(layer(layer_states[:1]), layer_states[0])
    assert not layer.losses


def test_gradient_reaches_every_state_and_states_of_zeros(layer_states):
    states = [tf.Variable(state) for state in layer_states]
    states[1][:, 0].assign(tf.zeros((B, D)))
    layer = LayerDiversity()
    with tf.GradientTape() as tape:
        layer([tf.convert_to_tensor(state) for state in states])
        (loss,) = layer.losses
    for gradient in tape.gradient(loss, states):
        assert np.all(np.isfinite(gradient))
        assert np.any(gradient.numpy() != 0)


def test_a_functional_model_keeps_the_loss(layer_states):
    inputs = [keras.Input((None, D)) for _ in layer_states]
    model = keras.Model(inputs, LayerDiversity(weight=0.5)(inputs))
    model(layer_states)
    (loss,) = model.losses
    assert float(loss) == pytest.approx(loss_of(layer_states, weight=0.5))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"reduction": "max"}, "'mean', 'sum'.*reduction='max'"),
        ({"positions": "both"}, "'source', 'target'.*positions='both'"),
        ({"weight": -1.0}, "weight=-1.0"),
    ],
)
def test_refuses_options_it_does_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        LayerDiversity(**options)


def test_refuses_to_measure_a_single_state(layer_states):
    with pytest.raises(ValueError, match="at least two.*1 states"):
        diversity(layer_states[:1])
