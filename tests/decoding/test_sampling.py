"""What must be true of sampling.

* outputs are as frequent as the model, the temperature and the cuts make them
* samples of a sentence depend on the sentence and the seed, not on the batch
* the reported sum of log-probabilities is the model's
* the rules of searches hold for samples
"""

import collections

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, tokens

from keras_deepnmt.decoding import (
    SearchOptions,
    compile_for,
    greedy_search,
    sample_search,
)

MANY = 4_000
LONGEST = 3


def run(model, sources=SOURCES, function=sample_search, **options):
    search = model.compiled(function)
    return search(sources, options=SearchOptions(**options), max_length=LONGEST)


def next_distribution(model, source, prefix, options):
    """The distribution of the next token, by plain loops."""
    words = [1, *range(4, model.target_vocabulary_size)]
    permitted = [3] if len(prefix) == LONGEST - 1 else [3, *words]
    weights = {
        token: np.exp(
            model.reference_log_prob(source, [*prefix, token])
            - model.reference_log_prob(source, prefix)
        )
        ** (1 / options.get("sampling_temperature", 1.0))
        for token in permitted
    }
    ranked = sorted(weights, key=weights.get, reverse=True)
    ranked = ranked[: options.get("sampling_top_k", 0) or None]
    total, kept, share = sum(weights[t] for t in ranked), [], 0.0
    for token in ranked:
        if share < options.get("sampling_top_p", 1.0) or not kept:
            kept.append(token)
            share += weights[token] / total
    total = sum(weights[token] for token in kept)
    return {token: weights[token] / total for token in kept}


def all_outputs(model, source, options, prefix=()):
    """Every output that can be drawn, with its probability."""
    distribution = next_distribution(model, source, list(prefix), options)
    for token, probability in distribution.items():
        if token == 3:
            yield (*prefix, 3), probability
        else:
            for output, rest in all_outputs(
                model, source, options, (*prefix, token)
            ):
                yield output, probability * rest


@pytest.mark.parametrize(
    "options",
    [
        {"sampling_temperature": 0.5},
        {"sampling_top_k": 3, "sampling_top_p": 0.8},
        *(
            pytest.param(options, marks=pytest.mark.thorough)
            for options in (
                {},
                {"sampling_temperature": 2.0, "sampling_top_k": 2},
                {"sampling_top_p": 0.7},
            )
        ),
    ],
    ids=str,
)
def test_outputs_are_as_frequent_as_brute_force_says(options):
    model = ToyModel(seed=4, scale=1.0)
    found = run(model, num_beams=MANY, **options)["ids"]
    for row, source in enumerate(SOURCES):
        expected = dict(all_outputs(model, source, options))
        counts = collections.Counter(map(tuple, map(tokens, found[row])))
        assert set(counts) <= set(expected)
        for output, probability in expected.items():
            deviation = (probability * (1 - probability) / MANY) ** 0.5
            frequency = counts[output] / MANY
            # 5 deviations: one test in a million fails by chance.
            assert abs(frequency - probability) < 5 * deviation + 1e-9, output


def test_samples_do_not_depend_on_the_batch():
    model = ToyModel(vocabulary_size=30, seed=1, scale=0.5)
    together = run(model, num_beams=5)["ids"]
    for row, source in enumerate(SOURCES):
        alone = run(model, source[None, : (source != 0).sum()], num_beams=5)
        np.testing.assert_array_equal(alone["ids"][0], together[row])


def test_seeds_sentences_and_samples_differ():
    model = ToyModel(vocabulary_size=300, seed=1, scale=0.1)
    same = np.repeat(SOURCES[:1], 2, axis=0)
    drawn = [
        tuple(tokens(ids))
        for seed in range(3)
        for ids in run(model, same, num_beams=4, sampling_seed=seed)["ids"][0]
    ]
    # Of 12 samples of two words of 300, hardly any are equal.
    assert len(set(drawn)) >= 10
    by_sentence = run(model, num_beams=4)["ids"]
    assert not np.array_equal(by_sentence[0], by_sentence[1])


def test_scores_are_the_models_and_sorted():
    model = ToyModel(seed=2, scale=1.0)
    outputs = run(model, num_beams=7, sampling_temperature=3.0)
    for row, source in enumerate(SOURCES):
        for ids, log_prob in zip(
            outputs["ids"][row], outputs["log_probs"][row], strict=True
        ):
            expected = model.reference_log_prob(source, tokens(ids))
            assert log_prob == pytest.approx(expected, rel=1e-4)
    assert (np.diff(outputs["scores"], axis=1) <= 0).all()


def test_the_lowest_temperature_is_greedy_search():
    model = ToyModel()
    for seed in range(5):
        model.draw_weights(seed)
        cold = run(model, num_beams=3, sampling_temperature=1e-4)["ids"]
        greedy = run(model, function=greedy_search, num_beams=1)["ids"]
        for sample in range(3):
            np.testing.assert_array_equal(cold[:, sample], greedy)


def test_rules_hold_for_samples():
    model = ToyModel(seed=2, scale=0.3)
    options = {"no_repeat_ngram_size": 1, "allow_unknown": False}
    ids = run(model, num_beams=200, min_length=1, **options)["ids"]
    assert not (ids == 1).any()
    for output in map(tokens, ids.reshape(-1, LONGEST)):
        assert len(output) >= 2 and len(set(output)) == len(output)


def test_rows_of_padding_have_no_samples():
    sources = np.array([[4, 9, 3], [0, 0, 0]], "int32")
    outputs = run(ToyModel(), sources, num_beams=2)
    assert not outputs["ids"][1].any()
    assert np.isneginf(outputs["scores"][1]).all()


def test_another_seed_or_temperature_needs_no_compilation():
    search = compile_for(ToyModel(), sample_search, jit_compile=False)
    for seed, temperature in ((1, 1.0), (2, 0.5)):
        options = SearchOptions(
            sampling_seed=seed, sampling_temperature=temperature
        )
        search(SOURCES, options=options, max_length=LONGEST)
    assert search.num_compilations == 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sampling_temperature", 0.0),
        ("sampling_temperature", -1.0),
        ("sampling_top_k", -1),
        ("sampling_top_p", 0.0),
        ("sampling_top_p", 1.1),
        ("sampling_seed", -1),
        ("sampling_seed", 2**31),
    ],
)
def test_wrong_values_are_refused(name, wrong):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        SearchOptions(**{name: wrong})
