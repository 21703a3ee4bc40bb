"""What must be true of the losses: they equal cross-entropy against smoothed
one-hot labels, padding counts nowhere, and the gradient is theirs as well; a
registered loss is made by its name."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt import losses
from keras_deepnmt.losses import (
    LabelSmoothedCrossEntropy,
    computes_from_scores,
    get_loss,
    list_losses,
    negative_log_likelihood,
    register_loss,
)

B, T, V = 3, 5, 7


@pytest.fixture
def batch():
    random = np.random.default_rng(0)
    logits = random.normal(size=(B, T, V)).astype("float32")
    labels = random.integers(1, V, (B, T)).astype("int32")
    labels[1, 3:] = 0
    labels[2, :] = 0
    return labels, logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def reference(labels, log_probs, label_smoothing):
    losses = np.zeros(labels.shape)
    for b in range(B):
        for t in range(T):
            if labels[b, t] == 0:
                continue
            one_hot = np.eye(V)[labels[b, t]]
            smoothed = (1 - label_smoothing) * one_hot + label_smoothing / V
            losses[b, t] = -(smoothed * log_probs[b, t]).sum()
    return losses


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.7])
def test_equals_cross_entropy_with_smoothed_one_hot(batch, label_smoothing):
    labels, log_probs = batch
    loss = LabelSmoothedCrossEntropy(label_smoothing)
    np.testing.assert_allclose(
        loss.call(labels, log_probs),
        reference(labels, log_probs, label_smoothing),
        atol=1e-5,
    )


def test_used_as_a_keras_loss_it_sums(batch):
    labels, log_probs = batch
    np.testing.assert_allclose(
        LabelSmoothedCrossEntropy(0.1)(labels, log_probs),
        reference(labels, log_probs, 0.1).sum(),
        rtol=1e-5,
    )


def test_what_stands_at_padding_cannot_be_seen(batch):
    labels, log_probs = batch
    spoiled = np.where((labels == 0)[..., None], -1e30, log_probs)
    loss = LabelSmoothedCrossEntropy(0.1)
    np.testing.assert_array_equal(
        loss.call(labels, spoiled), loss.call(labels, log_probs)
    )


def test_padding_gets_no_gradient_and_real_tokens_get_theirs(batch):
    labels, log_probs = batch
    variable = tf.Variable(log_probs)
    with tf.GradientTape() as tape:
        losses = LabelSmoothedCrossEntropy(0.1).call(labels, variable)
        total = keras.ops.sum(losses)
    real = (labels != 0)[..., None]
    smoothed = 0.9 * np.eye(V)[labels] + 0.1 / V
    np.testing.assert_allclose(
        tape.gradient(total, variable),
        np.where(real, -smoothed, 0.0),
        atol=1e-6,
    )


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.7])
def test_from_scores_value_and_gradient_are_those_of_the_definition(
    batch, label_smoothing
):
    labels, log_probs = batch
    # Scores are log-probabilities plus anything that a row shares.
    shift = np.random.default_rng(1).normal(size=(B, T, 1)) * 100
    scores = tf.Variable((log_probs + shift).astype("float32"))
    loss = LabelSmoothedCrossEntropy(label_smoothing)
    with tf.GradientTape() as tape:
        losses = loss.from_scores(labels, scores)
        total = keras.ops.sum(losses)
    np.testing.assert_allclose(
        losses, reference(labels, log_probs, label_smoothing), atol=1e-4
    )
    smoothed = (1 - label_smoothing) * np.eye(V)[labels] + label_smoothing / V
    real = (labels != 0)[..., None]
    np.testing.assert_allclose(
        tape.gradient(total, scores),
        np.where(real, np.exp(log_probs) - smoothed, 0.0),
        atol=1e-5,
    )


def test_a_subclass_with_its_own_call_is_not_computed_from_scores():
    class Renamed(LabelSmoothedCrossEntropy):
        pass

    class OtherCall(Renamed):
        def call(self, labels, log_probs):
            return 2.0 * super().call(labels, log_probs)

    class OtherScores(OtherCall):
        def from_scores(self, labels, scores):
            return 2.0 * super().from_scores(labels, scores)

    assert computes_from_scores(Renamed())
    assert not computes_from_scores(OtherCall())
    assert computes_from_scores(OtherScores())
    assert not computes_from_scores(keras.losses.MeanSquaredError())


def test_the_likelihood_of_a_label_is_picked(batch):
    labels, log_probs = batch
    picked = -np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(
        negative_log_likelihood(labels, log_probs), picked, atol=1e-6
    )


def test_survives_its_configuration():
    loss = LabelSmoothedCrossEntropy(0.25)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.label_smoothing == 0.25
    assert again.get_config() == loss.get_config()


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_refuses_a_smoothing_outside_its_range(label_smoothing):
    with pytest.raises(ValueError, match=f"label_smoothing={label_smoothing}"):
        LabelSmoothedCrossEntropy(label_smoothing)


def test_a_registered_loss_is_made_by_its_name(batch, monkeypatch):
    monkeypatch.setattr(losses, "_LOSSES", dict(losses._LOSSES))

    class Mine(LabelSmoothedCrossEntropy):
        pass

    register_loss("mine_in_test", Mine)
    assert "mine_in_test" in list_losses()
    assert isinstance(get_loss("mine_in_test", label_smoothing=0.3), Mine)
    np.testing.assert_array_equal(
        get_loss("cross_entropy").call(*batch),
        LabelSmoothedCrossEntropy(0.0).call(*batch),
    )


@pytest.mark.parametrize(
    "use, said",
    [
        (lambda: get_loss("cros_entropy"), 'Did you mean "cross_entropy"?'),
        (lambda: get_loss("x"), "Registered: .*cross_entropy, label_smoothed"),
        (lambda: register_loss("x", 0.1), "make_loss=0.1"),
        (
            lambda: register_loss("cross_entropy", LabelSmoothedCrossEntropy),
            "must not be taken",
        ),
    ],
)
def test_refuses_what_names_no_loss(use, said):
    with pytest.raises(ValueError, match=said.replace("?", "[?]")):
        use()
