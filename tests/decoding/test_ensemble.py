"""What must be true of ensembles.

* the probabilities are the weighted means of the models', by plain NumPy
* a large beam finds what brute force finds with these probabilities
* an ensemble of one model, or of equal models, is that model
* step by step is all at once, for real models of different architectures
"""

import functools

import keras
import numpy as np
import pytest
from given_arrays import given_arrays
from toy_model import ON_JAX, SOURCES, ToyModel, eagerly, tokens

from keras_deepnmt import create_model
from keras_deepnmt.decoding import (
    SearchOptions,
    beam_search,
    compile_for,
    score_targets,
    search,
)
from keras_deepnmt.models import Ensemble

LONGEST = 4
ONE_LAYER = {
    "hidden_dim": 8,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}
SIZES = {
    "transformer_tiny": {"intermediate_dim": 16, "num_heads": 2, **ONE_LAYER},
    "conv_seq2seq_tiny": {"growth_dim": 4, **ONE_LAYER},
}
WEIGHTS = [1, 3, 2]


def run(model, **options):
    options["max_length"] = LONGEST
    return eagerly(beam_search, model, SOURCES, **options)


def small(preset, vocabulary_size):
    return create_model(preset, 17, vocabulary_size, **SIZES[preset])


def reference(models, mean, source):
    """A function of a target: its log-probability, one token at a time."""
    weights = np.array(WEIGHTS) / sum(WEIGHTS)

    @functools.cache
    def log_probs(prefix):
        each = np.array(
            [
                [
                    model.reference_log_prob(source, [*prefix, word])
                    - model.reference_log_prob(source, prefix)
                    for word in range(model.target_vocabulary_size)
                ]
                for model in models
            ]
        )  # (M, V)
        if mean == "arithmetic":
            p = weights @ np.exp(each)
        else:
            p = np.exp(weights @ each)
            p /= p.sum()
        return np.log(p)

    return lambda target: sum(
        log_probs(tuple(target[:length]))[token]
        for length, token in enumerate(target)
    )


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
def test_large_beam_finds_what_brute_force_finds(mean):
    models = [ToyModel(seed=seed, scale=1.0) for seed in range(3)]
    outputs = run(Ensemble(models, WEIGHTS, mean), num_beams=41)
    for row, source in enumerate(SOURCES):
        log_prob = reference(models, mean, source)
        ranked = sorted(
            (
                (
                    log_prob(target) / ((5 + len(target)) / 6) ** 0.6,
                    target,
                )
                for target in models[0].all_targets(LONGEST)
            ),
            reverse=True,
        )[:20]
        scores, targets = zip(*ranked, strict=True)
        found = [tokens(ids) for ids in outputs["ids"][row, :20]]
        assert found == list(targets)
        np.testing.assert_allclose(outputs["scores"][row, :20], scores, 1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
@pytest.mark.parametrize("number", [1, 3])
def test_equal_models_are_one_model(mean, number):
    model = ToyModel(seed=5)
    alone = run(model)
    together = run(Ensemble([model] * number, range(1, number + 1), mean))
    np.testing.assert_array_equal(together["ids"], alone["ids"])
    np.testing.assert_allclose(together["scores"], alone["scores"], 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("given", "options"),
    [
        *(
            pytest.param((name,), {"num_beams": n}, marks=pytest.mark.thorough)
            for name, n in (("prefixes", 3), ("phrases", 4), ("limits", 1))
        ),
        (("prefixes", "phrases", "limits"), {"num_beams": 4, "min_length": 2}),
        ((), {"num_beams": 4, "num_groups": 2, "diversity_penalty": 0.4}),
        (("prefixes",), {"num_beams": 3, "sampling": True}),
        ((), {"num_beams": 2, "no_repeat_ngram_size": 1, "patience": 1.0}),
    ],
    ids=str,
)
def test_equal_models_do_what_one_does_whatever_is_asked_for(given, options):
    model = ToyModel(vocabulary_size=9, seed=5)
    options = SearchOptions(**options)
    alone, together = (
        eagerly(
            search,
            one,
            SOURCES,
            *given_arrays(given),
            options=options,
            max_length=LONGEST,
        )
        for one in (model, Ensemble([model] * 2))
    )
    np.testing.assert_array_equal(together["ids"], alone["ids"])
    np.testing.assert_allclose(together["scores"], alone["scores"], 1e-4, 1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mean",
    ["arithmetic", "geometric"],
)
def test_a_search_reports_what_teacher_forcing_gives(mean):
    keras.utils.set_random_seed(3)
    ensemble = Ensemble([small(preset, 19) for preset in SIZES], mean=mean)
    outputs = compile_for(ensemble, beam_search, jit_compile=ON_JAX)(
        SOURCES, max_length=LONGEST, num_beams=3
    )
    labels = outputs["ids"][:, 0]
    begin = np.full((len(labels), 1), 2, "int32")
    target_ids = np.concatenate([begin, labels[:, :-1]], axis=1)
    target_ids[target_ids == 3] = 0  # the end id is not an input
    scored = compile_for(ensemble, score_targets, jit_compile=ON_JAX)(
        SOURCES, target_ids, labels
    )
    np.testing.assert_allclose(
        scored.sum(axis=1), outputs["log_probs"][:, 0], 1e-4
    )
    parameters = [model.count_params() for model in ensemble.models]
    assert ensemble.count_params() == sum(parameters)


def test_models_without_histories_may_come_first_or_last():
    keras.utils.set_random_seed(3)
    toy = ToyModel(vocabulary_size=9, seed=5)
    real = small("transformer_tiny", 9)
    orders = [toy, real], [real, toy]
    found = [run(Ensemble(models), num_beams=3) for models in orders]
    np.testing.assert_array_equal(found[0]["ids"], found[1]["ids"])
    np.testing.assert_allclose(found[0]["scores"], found[1]["scores"], 1e-4)


def test_the_shortest_position_range_counts():
    lengths = (None, 9, 7)
    models = [ToyModel(max_length=length) for length in lengths]
    assert Ensemble(models).max_length == 7
    assert Ensemble(models[:1]).max_length is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"models": []}, "at least one model"),
        ({"weights": [1]}, "`weights` must be 2 positive numbers"),
        ({"weights": [1, 0]}, "`weights` must be 2 positive numbers"),
        ({"mean": "harmonic"}, "`mean` must be one of"),
        (
            {"models": [ToyModel(6), ToyModel(7)]},
            r"target vocabularies of \[6, 7\] tokens",
        ),
    ],
)
def test_what_is_no_ensemble_is_refused(wrong, message):
    given = {"models": [ToyModel(), ToyModel()], **wrong}
    with pytest.raises(ValueError, match=message):
        Ensemble(**given)
