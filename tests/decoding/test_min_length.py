"""What must be true of the minimum length of translations.

* a large beam finds what brute force finds among the long enough outputs
* a search with one beam is greedy search, and both respect the minimum
* where a sentence's longest output is shorter than that, it is of that length
"""

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, run, tokens

from keras_deepnmt.decoding import SearchOptions, beam_search, greedy_search


@pytest.mark.thorough
@pytest.mark.parametrize("min_length", [0, 1, 2, 3])
def test_large_beam_finds_what_brute_force_finds(min_length):
    model = ToyModel(seed=3, scale=1.0)
    outputs = run(
        model, beam_search, num_beams=41, max_length=4, min_length=min_length
    )
    for row, source in enumerate(SOURCES):
        ranked = sorted(
            (
                (
                    model.reference_log_prob(source, target)
                    / ((5 + len(target)) / 6) ** 0.6,
                    target,
                )
                for target in model.all_targets(4)
                # The end id is not a token of the translation.
                if len(target) - 1 >= min_length
            ),
            reverse=True,
        )
        scores, targets = zip(*ranked, strict=True)
        number = len(targets)
        assert [tokens(ids) for ids in outputs["ids"][row, :number]] == list(
            targets
        )
        np.testing.assert_allclose(
            outputs["scores"][row, :number], scores, 1e-4
        )
        assert not outputs["ids"][row, number:].any()


@pytest.mark.thorough
@pytest.mark.parametrize("min_length", [0, 3, 6])
def test_greedy_search_is_a_search_with_one_beam(min_length):
    options = {"max_length": 9, "min_length": min_length}
    model = ToyModel(vocabulary_size=13)
    for seed in range(5):
        model.draw_weights(seed)
        greedy = run(model, greedy_search, **options)
        beam = run(model, beam_search, num_beams=1, **options)
        np.testing.assert_array_equal(greedy["ids"], beam["ids"][:, 0])
        np.testing.assert_allclose(greedy["scores"], beam["scores"][:, 0], 1e-5)
        lengths = (greedy["ids"] != 0).sum(-1) - 1
        assert lengths.min() >= min_length


@pytest.mark.parametrize("function", [beam_search, greedy_search])
def test_the_maximum_length_comes_first(function):
    ids = run(ToyModel(), function, max_length=4, min_length=9)["ids"]
    best = ids[:, 0] if ids.ndim == 3 else ids
    assert ((best != 0).sum(-1) == 4).all() and (best[:, 3] == 3).all()


@pytest.mark.parametrize("wrong", [-1, 1.5])
def test_a_wrong_minimum_is_refused(wrong):
    with pytest.raises(ValueError, match="`min_length` must be"):
        SearchOptions(min_length=wrong)
