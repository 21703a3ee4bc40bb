"""What must be true of the offset in the length penalty.

* 5 is the penalty of Wu et al. (2016), 0 a plain power of the length
* a search that stops early finds what one that never stops finds
* rows of padding have no score
* an offset that no length can be added to is refused
"""

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, run

from keras_deepnmt.decoding import beam_search, greedy_search
from keras_deepnmt.decoding.ranking import score_divisor

PLAIN = {"length_penalty": 1.0, "length_offset": 0.0}


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
def test_divisors_are_those_of_the_papers(length_penalty):
    lengths = np.arange(1, 60)
    np.testing.assert_allclose(
        score_divisor(lengths, length_penalty),
        ((5 + lengths) / 6) ** length_penalty,
        1e-5,
    )
    np.testing.assert_allclose(
        score_divisor(lengths, length_penalty, 0.0),
        lengths.astype("float64") ** length_penalty,
        1e-5,
    )


@pytest.mark.parametrize("length_offset", [0.0, 0.1, 1.0, 5.0, 1000.0])
def test_a_divisor_begins_at_one_and_never_falls(length_offset):
    divisors = np.asarray(score_divisor(np.arange(200), 1.3, length_offset))
    # No output is shorter than its end id; 0 is a row of padding.
    assert divisors[0] == divisors[1] == 1
    assert (np.diff(divisors[1:]) > 0).all()


def search_to_the_end(model, source, num_beams, max_length, score):
    """Beam search of one sentence that never stops before `max_length`."""
    live, finished = [[]], []
    for length in range(1, max_length + 1):
        words = [1, 3, 4, 5] if length < max_length else [3]
        grown = sorted(
            ([*target, word] for target in live for word in words),
            key=lambda target: -model.reference_log_prob(source, target),
        )[:num_beams]
        live = [target for target in grown if target[-1] != 3]
        finished += [target for target in grown if target[-1] == 3]
    return sorted(finished, key=score, reverse=True)[:num_beams]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "length_penalty, length_offset", [(2.0, 0.0), (2.0, 1.0)]
)
def test_stopping_early_loses_nothing(model, length_penalty, length_offset):
    options = {"length_penalty": length_penalty, "length_offset": length_offset}
    for seed in range(6):
        model.draw_weights(seed, scale=1.0)
        found = run(model, beam_search, num_beams=3, max_length=8, **options)
        for row, source in enumerate(SOURCES):

            def score(target, source=source):
                length = (length_offset + len(target)) / (length_offset + 1)
                log_prob = model.reference_log_prob(source, target)
                return log_prob / length**length_penalty

            best = search_to_the_end(model, source, 3, 8, score)
            ids = [[i for i in one.tolist() if i] for one in found["ids"][row]]
            assert ids == best
            np.testing.assert_allclose(
                found["scores"][row], list(map(score, best)), 1e-4
            )


@pytest.mark.parametrize("function", [beam_search, greedy_search])
def test_offset_zero_gives_the_mean_and_none_to_padding(function):
    model = ToyModel(vocabulary_size=13, seed=6)
    sources = np.pad(SOURCES, [(0, 2), (0, 0)])
    found = run(model, function, sources, max_length=9, **PLAIN)
    lengths = (found["ids"] != 0).sum(-1)
    assert lengths[:3].max() > 1
    np.testing.assert_allclose(
        found["scores"][:3], found["log_probs"][:3] / lengths[:3], 1e-5
    )
    assert np.isneginf(found["scores"][3:]).all()


def test_greedy_search_scores_as_one_beam_does():
    model = ToyModel(vocabulary_size=13, seed=6)
    greedy = run(model, greedy_search, max_length=9, **PLAIN)
    beam = run(model, beam_search, num_beams=1, max_length=9, **PLAIN)
    np.testing.assert_array_equal(greedy["ids"], beam["ids"][:, 0])
    np.testing.assert_allclose(greedy["scores"], beam["scores"][:, 0], 1e-5)
    # Greedy search chooses without the offset.
    usual = run(model, greedy_search, max_length=9, length_penalty=1.0)
    np.testing.assert_array_equal(greedy["ids"], usual["ids"])
    assert (usual["scores"] < greedy["scores"]).any()


@pytest.mark.parametrize("function", [beam_search, greedy_search])
@pytest.mark.parametrize("wrong", [-0.5, float("inf"), float("nan")])
def test_an_offset_that_is_none_is_refused(function, wrong):
    said = f"finite number of at least 0. Received: {wrong}. Take"
    with pytest.raises(ValueError, match=said):
        function(ToyModel(), SOURCES, length_offset=wrong, max_length=5)
