"""What must be true of the objective: R-Drop, distillation and scheduled
sampling are their equations, each alone and together; what layers add counts
once; the share of predictions follows the updates, and ids that are kept stay;
another term changes each step that it overrides."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_deepnmt.losses import LabelSmoothedCrossEntropy, kl_divergence
from keras_deepnmt.models import (
    Distillation,
    Objective,
    ObjectiveTerm,
    RDrop,
    ScheduledSampling,
    Seq2Seq,
    register_objective_term,
)

B, T, V = 3, 5, 7
LABELS = np.array([[4, 6, 3, 0, 0], [5, 5, 4, 6, 3], [3, 0, 0, 0, 0]], "int32")
TARGETS = np.array([[2, 4, 6, 0, 0], [2, 5, 5, 4, 6], [2, 0, 0, 0, 0]], "int32")
INPUTS = {"source_ids": LABELS, "target_ids": TARGETS}
random = np.random.default_rng(3)
FIRST, SECOND, THIRD, TAUGHT = random.normal(size=(4, B, T, V)).astype(
    "float32"
)


class Canned:
    """A model whose forwards are given; it keeps the arguments of its calls."""

    target_vocabulary_size = source_vocabulary_size = V
    token_loss = LabelSmoothedCrossEntropy(0.1)
    output_fusion = None
    sum_token_losses = Seq2Seq.sum_token_losses
    _token_losses = Seq2Seq._token_losses

    def __init__(self, *scores, update=0):
        self.scores = list(scores)
        self.update = update
        self.sampling_generator = keras.random.SeedGenerator(5)
        self.read = []

    def log_probs(self, scores):
        return ops.log_softmax(ops.convert_to_tensor(scores), axis=-1)

    def forward_again(self, inputs):
        self.read.append(ops.convert_to_numpy(inputs["target_ids"]))
        return self.scores.pop(0)

    def encode(self, source_ids):
        return {"source_ids": source_ids}

    def decode(self, target_ids, memory):
        return self.forward_again({**memory, "target_ids": target_ids})

    def updates_made(self):
        return self.update


def summed(objective, model, *auxiliary):
    left = list(auxiliary)
    loss, tokens, added = objective.sum_losses(
        model, INPUTS, LABELS, FIRST, lambda tokens: left.pop(0)
    )
    assert not left
    assert float(tokens) == np.count_nonzero(LABELS)
    return float(loss), added


def reference(scores, alpha=0.0, teacher=None, weight=0.0):
    """One or two forwards' loss, position by position."""
    logs = [
        np.log(np.exp(s) / np.exp(s).sum(-1, keepdims=True)) for s in scores
    ]
    total = 0.0
    for b, t in np.argwhere(LABELS != 0):
        forwards = [log[b, t] for log in logs]
        losses = []
        for log in forwards:
            loss = -0.9 * log[LABELS[b, t]] - 0.1 * log.mean()
            if teacher is not None:
                q = np.exp(teacher[b, t]) / np.exp(teacher[b, t]).sum()
                taught = sum(q[v] * (np.log(q[v]) - log[v]) for v in range(V))
                loss = (1 - weight) * loss + weight * taught
            losses.append(loss)
        total += np.mean(losses)
        if alpha:
            one, two = forwards
            there = sum(np.exp(one) * (one - two))
            back = sum(np.exp(two) * (two - one))
            total += alpha / 4 * (there + back)
    return total


def test_r_drop_is_half_of_the_papers_objective():
    loss, added = summed(Objective((RDrop(3.0),)), Canned(SECOND), 2.0, 5.0)
    np.testing.assert_allclose(
        loss, reference([FIRST, SECOND], alpha=3.0), rtol=1e-5
    )
    assert added == 3.5


def test_r_drop_of_equal_forwards_is_the_plain_loss():
    plain, _ = summed(Objective(), Canned(), 0.0)
    loss, _ = summed(Objective((RDrop(3.0),)), Canned(FIRST), 0.0, 0.0)
    np.testing.assert_allclose(loss, plain, rtol=1e-6)
    np.testing.assert_allclose(plain, reference([FIRST]), rtol=1e-5)


def test_distillation_mixes_in_the_divergence_from_the_teacher():
    option = Distillation(Canned(TAUGHT), 0.3)
    loss, added = summed(Objective((option,)), Canned(), 2.0)
    expected = reference([FIRST], teacher=TAUGHT, weight=0.3)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert added == 2.0


def test_a_teacher_that_agrees_costs_nothing():
    option = Distillation(Canned(FIRST), 1.0)
    loss, _ = summed(Objective((option,)), Canned(), 0.0)
    np.testing.assert_allclose(loss, 0.0, atol=1e-5)


def test_all_options_compose():
    model, teacher = Canned(SECOND, THIRD), Canned(TAUGHT)
    sampling = ScheduledSampling(1.0)
    objective = Objective((RDrop(3.0), sampling, Distillation(teacher, 0.3)))
    loss, added = summed(objective, model, 2.0, 5.0)
    expected = reference([SECOND, THIRD], 3.0, TAUGHT, 0.3)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert added == 3.5
    # Both forwards and the teacher read the same, no longer the reference.
    read = [*model.read, *teacher.read]
    assert len(read) == 3
    for ids in read:
        np.testing.assert_array_equal(ids, predictions(FIRST))
    assert (read[0] != TARGETS).any()


class EveryStep(ObjectiveTerm):
    """Changes all that a term can, by numbers that are easy to follow."""

    needs_second_forward = True

    def change_inputs(self, model, inputs, scores):
        return {**inputs, "target_ids": inputs["target_ids"] + 1}

    def prepare(self, model, inputs):
        return float(ops.max(inputs["target_ids"]))

    def change_losses(self, model, labels, log_probs, losses, prepared):
        return 0.0 * losses + prepared

    def compare_forwards(self, model, labels, first, second):
        return ops.full(labels.shape, 10.0)


def test_a_term_changes_each_step_that_it_overrides():
    model = Canned(SECOND, THIRD)
    loss, added = summed(Objective((EveryStep(),)), model, 2.0, 5.0)
    # Ids up to 6 become 7; the sum of two forwards and 10 is halved.
    assert loss == np.count_nonzero(LABELS) * (7.0 + 7.0 + 10.0) / 2.0
    assert added == 3.5
    assert len(model.read) == 2
    for ids in model.read:
        np.testing.assert_array_equal(ids, TARGETS + 1)


def test_a_term_that_overrides_nothing_changes_nothing():
    plain, _ = summed(Objective(), Canned(), 0.0)
    loss, _ = summed(Objective((ObjectiveTerm(),)), Canned(), 0.0)
    assert loss == plain


def predictions(scores):
    ids = TARGETS.copy()
    for b, t in np.argwhere(TARGETS > 2):
        words = [1, *range(4, V)]
        ids[b, t] = max(words, key=lambda v: scores[b, t - 1, v])
    return ids


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_all_or_none_of_the_inputs_become_predictions(probability):
    scores = FIRST.copy()
    # Tokens that no search feeds back would win everywhere.
    scores[..., [0, 2, 3]] += 100.0
    model = Canned(SECOND)
    objective = Objective((ScheduledSampling(probability),))
    objective.sum_losses(model, INPUTS, LABELS, scores, lambda tokens: 0.0)
    expected = predictions(FIRST) if probability else TARGETS
    np.testing.assert_array_equal(model.read[0], expected)


def test_a_share_of_the_inputs_becomes_predictions():
    target_ids = np.full((101, 103), 4, "int32")
    scores = np.zeros((101, 103, V), "float32")
    scores[..., 5] = 1.0
    sampling = ScheduledSampling(0.25)
    seed = keras.random.SeedGenerator(5)
    mixed, again = (
        ops.convert_to_numpy(sampling.mix(target_ids, scores, 0, seed))
        for _ in range(2)
    )
    # Five standard deviations of 10,403 draws.
    assert abs((mixed == 5).mean() - 0.25) < 0.0213
    assert (mixed != again).any()


def test_sampling_leaves_begin_padding_and_the_ids_that_are_kept():
    # Earlier versions have no such argument.
    assert "kept" not in ScheduledSampling(1.0).get_config()
    sampling = ScheduledSampling(1.0, kept=[4])
    seed = keras.random.SeedGenerator(5)
    # As in a training step.
    mix = tf.function(lambda ids: sampling.mix(ids, scores, 0, seed))
    scores = np.zeros((B, T, V), "float32")
    scores[..., 5] = 1.0
    expected = np.where(np.isin(TARGETS, (0, 2, 4)), TARGETS, 5)
    np.testing.assert_array_equal(mix(TARGETS), expected)


@pytest.mark.parametrize(
    "update, share",
    [(0, 0.0), (11, 0.0), (14, 0.2), (17, 0.4), (21, 2 / 3), (26, 1.0)],
)
def test_the_share_grows_linearly_with_the_updates(update, share):
    sampling = ScheduledSampling(0.6, start_step=11, end_step=26)
    np.testing.assert_allclose(sampling.share(update), 0.6 * share, rtol=1e-6)


def test_a_ramp_of_no_length_is_a_step():
    sampling = ScheduledSampling(0.6, start_step=5, end_step=5)
    np.testing.assert_allclose(
        [sampling.share(update) for update in (4, 5, 6)], [0.0, 0.6, 0.6]
    )


def test_a_divergence_is_its_sum():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    expected = 0.2 * np.log(1 / 3) + 0.5 * np.log(5)
    found = kl_divergence(np.log(p), np.log(q))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "make, received",
    [
        (lambda: RDrop(-1.0), "alpha=-1.0"),
        (lambda: ScheduledSampling(1.5), "probability=1.5"),
        (lambda: ScheduledSampling(0.5, 7, 5), "start_step=7, end_step=5"),
        (lambda: Distillation(Canned(), 2.0), "weight=2.0"),
        (
            lambda: Objective((0.5,)),
            "`objective_terms` must .*0.5",
        ),
        (
            lambda: register_objective_term("r_drop", ScheduledSampling),
            "which is .*RDrop. Use another name",
        ),
        (lambda: register_objective_term("canned", Canned), "must be a sub"),
    ],
)
def test_refuses_what_is_no_option(make, received):
    with pytest.raises(ValueError, match=received):
        make()
