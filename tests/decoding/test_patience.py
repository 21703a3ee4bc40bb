"""What must be true of stopping a search early.

* it finds what a search written with loops finds
* unlimited patience is the search that stops at its bound
* other values need no compilation
"""

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, tokens

from keras_deepnmt.decoding import SearchOptions, beam_search, compile_for

LONGEST = 6


def run(model, **options):
    search = model.compiled(beam_search)
    return search(SOURCES, options=SearchOptions(**options), max_length=LONGEST)


def score(log_prob, length):
    return log_prob / ((5 + length) / 6) ** 0.6


def search_with_loops(model, source, num_beams, patience):
    """Beam search of one sentence, without arrays."""
    words = [1, *range(4, model.target_vocabulary_size)]
    live, finished, number = [((), 0.0)], [], 0
    while live:
        length = len(live[0][0]) + 1
        following = [3] if length == LONGEST else [3, *words]
        grown = sorted(
            (
                (model.reference_log_prob(source, [*ids, token]), (*ids, token))
                for ids, _ in live
                for token in following
            ),
            reverse=True,
        )[:num_beams]
        live = [(ids, total) for total, ids in grown if ids[-1] != 3]
        ended = [(score(t, length), ids) for t, ids in grown if ids[-1] == 3]
        number += len(ended)
        finished = sorted(finished + ended, reverse=True)[:num_beams]
        if patience and number >= patience * num_beams:
            break
        if len(finished) == num_beams and live:
            best = max(score(total, LONGEST) for _, total in live)
            if best <= finished[-1][0]:
                break
    return finished


@pytest.mark.thorough
@pytest.mark.parametrize("patience", [0.0, 0.5, 1, 2.0])
@pytest.mark.parametrize("num_beams", [2, 3])
def test_it_finds_what_loops_find(model, patience, num_beams):
    for seed in range(12):
        model.draw_weights(seed, scale=1.0)
        found = run(model, num_beams=num_beams, patience=patience)
        for row, source in enumerate(SOURCES):
            expected = search_with_loops(model, source, num_beams, patience)
            number = len(expected)
            assert [
                tuple(tokens(ids)) for ids in found["ids"][row, :number]
            ] == [ids for _, ids in expected]
            np.testing.assert_allclose(
                found["scores"][row, :number], [s for s, _ in expected], 1e-4
            )
            assert np.isneginf(found["scores"][row, number:]).all()


def test_endless_patience_is_no_limit():
    model = ToyModel(vocabulary_size=9)
    for seed in range(5):
        model.draw_weights(seed)
        free = run(model, num_beams=3)
        patient = run(model, num_beams=3, patience=1e6)
        for name in free:
            np.testing.assert_array_equal(free[name], patient[name])


def test_another_value_needs_no_compilation():
    search = compile_for(ToyModel(), beam_search, jit_compile=False)
    for patience in (0.0, 1.0, 2.5):
        options = SearchOptions(patience=patience)
        search(SOURCES, options=options, max_length=LONGEST)
    assert search.num_compilations == 1


def test_a_negative_value_is_refused():
    with pytest.raises(ValueError, match="`patience` must be"):
        SearchOptions(patience=-1)
