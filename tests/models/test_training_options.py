"""What must be true of a compiled model with R-Drop, scheduled sampling or
distillation: where an option can change nothing it does not; layers' losses
still count once; the teacher stays out of the student; the share of
predictions follows the optimizer; parts of a batch add up; another term trains
and is saved; Keras' metrics are refused, not ignored."""

import catalog
import keras
import numpy as np
import pytest
from test_training_step import ONE_LAYER, ConstantLoss, dataset_of, small

from keras_deepnmt.models import (
    Distillation,
    Ensemble,
    ObjectiveTerm,
    RDrop,
    ScheduledSampling,
    register_objective_term,
)
from keras_deepnmt.models.training_step import objective_term
from keras_deepnmt.models.training_step.training_state import seed_variables

ENTRY = catalog.MODELS[1]
BATCH = ENTRY.example(rows=4)
SAMPLING = ScheduledSampling(1.0)


@pytest.fixture(scope="module")
def teacher():
    keras.utils.set_random_seed(2)  # not those of the student
    return small(dropout=0.3)


@pytest.fixture(scope="module")
def weights():
    keras.utils.set_random_seed(1)
    return small().get_weights()


def compiled(weights, optimizer="sgd", **options):
    model = small()
    model.set_weights(weights)
    options = {"run_eagerly": True} | options
    model.compile(keras.optimizers.get(optimizer), **options)
    return model


def updated(weights, **options):
    model = compiled(weights, keras.optimizers.SGD(0.5), **options)
    model.fit(dataset_of(BATCH), epochs=2, verbose=0)
    return model.get_weights()


@pytest.fixture(scope="module")
def plain(weights):
    return updated(weights)


def assert_close(ones, others):
    for one, other in zip(ones, others, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def assert_apart(ones, others):
    pairs = zip(ones, others, strict=True)
    assert max(np.abs(one - other).max() for one, other in pairs) > 1e-4


@pytest.mark.thorough
def test_an_update_is_the_same_in_a_graph_and_operation_by_operation():
    """All other updates of this file are made operation by operation.

    Those of `test_two_replicas_update_as_one_device` are compiled by XLA, too.
    """
    keras.utils.set_random_seed(3)
    teacher, *models = (small(dropout=rate) for rate in (0.3, 0.0, 0.0))
    before = models[0].get_weights()
    for model, run_eagerly in zip(models, (True, False), strict=True):
        model.set_weights(before)
        model.compile(
            keras.optimizers.SGD(0.5),
            objective_terms=[RDrop(5.0), SAMPLING, Distillation(teacher, 0.7)],
            gradient_accumulation_steps=2,
            run_eagerly=run_eagerly,
            jit_compile=False,
        )
        model.fit(dataset_of(BATCH), epochs=2, verbose=0)
    eager, in_graph = (model.get_weights() for model in models)
    assert_close(eager, in_graph)
    assert_apart(eager, before)


@pytest.mark.thorough
def test_options_that_can_change_nothing_do_not(weights, plain, teacher):
    # Without dropout the two forwards of R-Drop are equal.
    found = updated(
        weights,
        objective_terms=[
            RDrop(5.0),
            ScheduledSampling(0.0),
            Distillation(teacher, 0.0),
        ],
    )
    assert_close(found, plain)


@pytest.mark.thorough
def test_a_student_that_is_its_teacher_has_nothing_to_learn(weights, plain):
    itself = small(dropout=0.3)
    itself.set_weights(weights)
    assert_close(
        updated(weights, objective_terms=[Distillation(itself, 1.0)]), weights
    )
    assert_apart(plain, weights)


@pytest.mark.thorough
def test_a_part_of_a_batch_makes_its_part_of_the_update(
    weights, plain, teacher
):
    terms = [RDrop(5.0), SAMPLING, Distillation(teacher, 0.7)]
    options = {"objective_terms": terms}
    whole = updated(weights, **options)
    parts = updated(weights, gradient_accumulation_steps=2, **options)
    assert_close(whole, parts)
    assert_apart(whole, plain)


def test_the_losses_of_layers_count_once():
    model = ENTRY.make(layer_diversity=ConstantLoss(), **ONE_LAYER)
    model.compile(
        keras.optimizers.SGD(0.25),
        run_eagerly=True,
        objective_terms=[RDrop(1.0), SAMPLING],
    )
    layers = [model.encoder_diversity, model.decoder_diversity]
    before = [float(layer.value) for layer in layers]
    model.fit(dataset_of(BATCH), verbose=0)
    for layer, value in zip(layers, before, strict=True):
        np.testing.assert_allclose(layer.value, value - 0.25, atol=1e-6)


def test_the_teacher_stays_out_of_the_student(weights, teacher, tmp_path):
    before = teacher.get_weights()
    seeds = [np.array(seed) for seed in seed_variables(teacher)]
    model = compiled(weights, objective_terms=[Distillation(teacher, 0.5)])
    alone = compiled(weights)
    model.fit(dataset_of(BATCH), verbose=0)
    assert len(model.variables) == len(alone.variables)
    assert len(model.optimizer.variables) == len(alone.optimizer.variables)
    for old, new in zip(before, teacher.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    for old, new in zip(seeds, seed_variables(teacher), strict=True):
        np.testing.assert_array_equal(old, new)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.objective.terms == ()
    assert_close(again.get_weights(), model.get_weights())


def test_an_ensemble_teaches_as_its_models_do(weights, teacher):
    first, second = (
        Distillation(of, 1.0) for of in (teacher, Ensemble([teacher]))
    )
    inputs, _ = BATCH
    expected = teacher.log_probs(teacher(inputs))
    np.testing.assert_allclose(first.log_probs(inputs), expected, atol=1e-5)
    np.testing.assert_allclose(second.log_probs(inputs), expected, atol=1e-5)
    losses = [
        compiled(weights, objective_terms=[term]).train_on_batch(*BATCH)[0]
        for term in (first, second)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_teacher_of_other_vocabularies_is_refused(weights):
    other = catalog.MODELS[0].make(**ONE_LAYER)
    with pytest.raises(ValueError, match="source_vocabulary_size=13 of the"):
        compiled(weights, objective_terms=[Distillation(other)])


def test_a_term_without_a_list_is_refused(weights):
    with pytest.raises(ValueError, match="`objective_terms` must be.*RDrop"):
        compiled(weights, objective_terms=RDrop(1.0))


@pytest.mark.thorough
def test_the_share_follows_the_optimizer(weights):
    # All inputs become predictions from the third update on.
    model = compiled(
        weights,
        keras.optimizers.SGD(0.0),
        objective_terms=[ScheduledSampling(1.0, start_step=2, end_step=2)],
    )
    history = model.fit(dataset_of(BATCH), epochs=4, verbose=0).history["loss"]
    always = compiled(
        weights, keras.optimizers.SGD(0.0), objective_terms=[SAMPLING]
    )
    never = compiled(weights, keras.optimizers.SGD(0.0))
    before, after = (
        model.fit(dataset_of(BATCH), verbose=0).history["loss"][0]
        for model in (never, always)
    )
    assert abs(before - after) > 1e-3
    np.testing.assert_allclose(history, [before] * 2 + [after] * 2, rtol=1e-6)


def test_options_are_saved_with_the_model(weights, tmp_path):
    model = compiled(
        weights, objective_terms=[RDrop(2.0), ScheduledSampling(0.5, 3, 7)]
    )
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.get_compile_config() == model.get_compile_config()
    dropping, sampling = again.objective.terms
    assert dropping.alpha == 2.0
    assert sampling.end_step == 7
    # A model that does not draw needs no generator.
    assert seed_variables(compiled(weights)) == []
    assert len(seed_variables(again)) == 1
    again.compile("sgd", objective_terms=[SAMPLING])
    assert len(seed_variables(again)) == 1


def test_a_model_that_was_saved_with_earlier_arguments_is_compiled(weights):
    model = compiled(weights)
    sampling = keras.saving.serialize_keras_object(ScheduledSampling(0.5, 3, 7))
    config = model.get_compile_config()
    model.compile_from_config(
        config | {"r_drop": 2.0, "scheduled_sampling": sampling}
    )
    sampling, dropping = model.objective.terms
    assert (sampling.end_step, dropping.alpha) == (7, 2.0)
    model.compile_from_config(
        config | {"r_drop": 0.0, "scheduled_sampling": None}
    )
    assert model.objective.is_plain


class Scaled(ObjectiveTerm):
    def __init__(self, factor):
        self.factor = factor

    def change_losses(self, model, labels, log_probs, losses, prepared):
        return self.factor * losses


@pytest.mark.thorough
def test_another_term_trains_and_is_saved(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(objective_term, "_TERMS", dict(objective_term._TERMS))
    register_objective_term("scaled_in_test", Scaled)
    # Half the loss at twice the rate is the same update.
    model = compiled(
        weights, keras.optimizers.SGD(1.0), objective_terms=[Scaled(0.5)]
    )
    model.fit(dataset_of(BATCH), verbose=0)
    half = compiled(weights, keras.optimizers.SGD(0.5))
    half.fit(dataset_of(BATCH), verbose=0)
    assert_close(model.get_weights(), half.get_weights())
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    (term,) = again.objective.terms
    assert isinstance(term, Scaled)
    assert term.factor == 0.5
    assert again.get_compile_config() == model.get_compile_config()


@pytest.mark.parametrize(
    "name, value",
    [
        ("metrics", ["accuracy"]),
        ("weighted_metrics", [keras.metrics.Mean()]),
        ("loss_weights", [0.5]),
    ],
)
def test_what_would_be_ignored_is_refused(weights, name, value):
    with pytest.raises(ValueError, match=f"`{name}` is not.*BleuCallback"):
        compiled(weights, **{name: value})
