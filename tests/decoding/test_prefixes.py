"""What must be true of given beginnings of translations.

* a large beam finds what brute force finds among outputs with this beginning
* a search with one beam is greedy search; samples begin so too
* the sum of log-probabilities covers the beginning
* rows without a beginning are as in a search without any
* a beginning wins over other rules, and has room for its end
"""

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, tokens

from keras_deepnmt.decoding import (
    SearchOptions,
    beam_search,
    greedy_search,
    sample_search,
)

PREFIXES = np.array([[5, 1], [4, 0], [0, 0]], "int32")
LONGEST = 4


def run(model, function, prefixes=PREFIXES, max_length=LONGEST, **options):
    search = model.compiled(function)
    options = SearchOptions(**options)
    return search(SOURCES, prefixes, options=options, max_length=max_length)


@pytest.mark.parametrize("seed", range(3))
def test_large_beam_finds_what_brute_force_finds(model, seed):
    model.draw_weights(seed, scale=1.0)
    outputs = run(model, beam_search, num_beams=41)
    for row, source in enumerate(SOURCES):
        prefix = tokens(PREFIXES[row])
        ranked = sorted(
            (
                (
                    model.reference_log_prob(source, target)
                    / ((5 + len(target)) / 6) ** 0.6,
                    target,
                )
                for target in model.all_targets(LONGEST)
                if target[: len(prefix)] == prefix
            ),
            reverse=True,
        )
        scores, targets = zip(*ranked, strict=True)
        number = len(targets)
        found = [tokens(ids) for ids in outputs["ids"][row, :number]]
        assert found == list(targets)
        np.testing.assert_allclose(
            outputs["scores"][row, :number], scores, 1e-4
        )
        assert not outputs["ids"][row, number:].any()


def test_greedy_search_is_a_search_with_one_beam():
    model = ToyModel(vocabulary_size=9)
    for seed in range(5):
        model.draw_weights(seed)
        greedy = run(model, greedy_search, max_length=9)
        beam = run(model, beam_search, max_length=9, num_beams=1)
        for name in greedy:
            np.testing.assert_allclose(greedy[name], beam[name][:, 0], 1e-5)
        for row, source in enumerate(SOURCES):
            target = tokens(greedy["ids"][row])
            assert greedy["log_probs"][row] == pytest.approx(
                model.reference_log_prob(source, target), rel=1e-4
            )


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("function", [beam_search, sample_search])
def test_rows_without_a_beginning_are_not_changed(function):
    model = ToyModel(vocabulary_size=9, seed=1, scale=1.0)
    free = model.compiled(function)(SOURCES, max_length=LONGEST, num_beams=3)
    mixed = run(model, function, num_beams=3)
    np.testing.assert_array_equal(mixed["ids"][2], free["ids"][2])
    for ids in mixed["ids"][0]:
        assert tokens(ids)[:2] == [5, 1]


@pytest.mark.thorough
def test_a_beginning_wins_over_other_rules():
    prefixes = np.array([[1, 1, 1, 1, 5]] * 3, "int32")
    rules = {
        "no_repeat_ngram_size": 1,
        "allow_unknown": False,
        # Too short for the beginning: it gets room, and one token to end.
        "max_length_ratio": 0.0,
        "max_extra_tokens": 2,
    }
    for function in (beam_search, greedy_search, sample_search):
        outputs = run(ToyModel(), function, prefixes, max_length=9, **rules)
        for ids in outputs["ids"].reshape(len(SOURCES), -1, 9)[:, 0]:
            assert tokens(ids) == [1, 1, 1, 1, 5, 3]


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="`prefix_ids` must have the shape"):
        beam_search(ToyModel(), SOURCES, PREFIXES[0], max_length=LONGEST)
