"""What must be true of diverse beam search.

* it finds what a search with groups, written with loops, finds
* without a penalty it finds what a plain search finds, and other translations,
  whatever else is asked for
* groups of one beam begin with different words if the penalty is high
"""

import itertools

import numpy as np
import pytest
from given_arrays import given_arrays
from toy_model import SOURCES, ToyModel, eagerly, tokens

from keras_deepnmt.decoding import SearchOptions, beam_search
from keras_deepnmt.errors import UserError

LONGEST = 5


def run(model, given=(), **options):
    """Searches with those of `given_arrays` that are named."""
    return eagerly(
        beam_search,
        model,
        SOURCES,
        *given_arrays(given),
        options=SearchOptions(**options),
        max_length=LONGEST,
    )


def score(log_prob, length):
    return log_prob / ((5 + length) / 6) ** 0.6


def search_with_loops(
    model,
    source,
    num_groups,
    group_size,
    penalty,
    min_length=0,
    no_repeat_ngram_size=0,
):
    """Diverse beam search of one sentence, without arrays."""

    def is_permitted(ids):
        before, token = ids[:-1], ids[-1]
        if len(ids) == LONGEST:
            return token == 3
        if token == 3:
            return len(before) >= min_length
        size = no_repeat_ngram_size
        ngrams = [ids[n : n + size] for n in range(len(before) - size + 1)]
        return not size or ids[len(ids) - size :] not in ngrams

    words = [1, *range(4, model.target_vocabulary_size)]
    live = [[((), 0.0)] for _ in range(num_groups)]
    finished, all_ended = [[] for _ in range(num_groups)], set()
    for length in range(1, LONGEST + 1):
        chosen = []
        for group in range(num_groups):
            grown = sorted(
                (
                    (total - penalty * chosen.count(token), total, ids)
                    for before, _ in live[group]
                    for token in [3, *words]
                    for ids in [(*before, token)]
                    if is_permitted(ids) and ids not in all_ended
                    for total in [model.reference_log_prob(source, ids)]
                ),
                reverse=True,
            )[:group_size]
            chosen += [ids[-1] for _, _, ids in grown]
            all_ended |= {ids for _, _, ids in grown if ids[-1] == 3}
            live[group] = [(ids, t) for _, t, ids in grown if ids[-1] != 3]
            ended = [(score(t, length), i) for _, t, i in grown if i[-1] == 3]
            finished[group] = sorted(finished[group] + ended, reverse=True)
            finished[group] = finished[group][:group_size]
            if len(finished[group]) == group_size and live[group]:
                best = max(score(total, LONGEST) for _, total in live[group])
                if best <= finished[group][-1][0]:
                    live[group] = []
    return sorted((x for group in finished for x in group), reverse=True)


def cases():
    """Each kind of groups with each rule; by default each of them once."""
    groups = ((2, 2), (3, 1), (2, 1))
    rules = (
        {},
        {"min_length": 3},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2, "min_length": 2},
    )
    for number, options in enumerate(rules):
        for place, kind in enumerate(groups):
            is_its_turn = number % len(groups) == place
            marks = () if is_its_turn else pytest.mark.thorough
            yield pytest.param(*kind, options, marks=marks)


@pytest.mark.thorough
@pytest.mark.parametrize(("groups", "size", "options"), list(cases()), ids=str)
def test_it_finds_what_loops_find(model, groups, size, options):
    for seed, penalty in itertools.product(range(2), (0.3, 1.0, 5.0)):
        model.draw_weights(seed, scale=1.0)
        found = model.compiled(beam_search)(
            SOURCES,
            options=SearchOptions(
                num_beams=groups * size,
                num_groups=groups,
                diversity_penalty=penalty,
                **options,
            ),
            max_length=LONGEST,
        )
        for row, source in enumerate(SOURCES):
            expected = search_with_loops(
                model, source, groups, size, penalty, **options
            )
            number = len(expected)
            np.testing.assert_allclose(
                found["scores"][row, :number], [s for s, _ in expected], 1e-4
            )
            outputs = [tuple(tokens(ids)) for ids in found["ids"][row, :number]]
            assert sorted(outputs) == sorted(ids for _, ids in expected)
            for ids, total in zip(
                outputs, found["log_probs"][row, :number], strict=True
            ):
                assert total == pytest.approx(
                    model.reference_log_prob(source, ids), rel=1e-4
                )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "options"),
    [
        ((), {}),
        (("prefixes", "phrases", "limits"), {"patience": 1.0}),
        ((), {"no_repeat_ngram_size": 1}),
        ((), {"min_length": 3}),
        ((), {"patience": 0.5}),
        ((), {"patience": 1.0}),
        (("prefixes",), {}),
        (("prefixes",), {"min_length": 3}),
        (("phrases",), {}),
        (("phrases",), {"no_repeat_ngram_size": 2}),
        (("limits",), {}),
    ],
    ids=str,
)
def test_other_groups_add_other_translations_to_a_plain_search(given, options):
    model = ToyModel(vocabulary_size=9, seed=2)
    plain = run(model, given, num_beams=2, **options)
    options |= {"num_groups": 3, "diversity_penalty": 0.0}
    grouped = run(model, given, num_beams=6, **options)
    for row in range(len(SOURCES)):
        scores, expected = (
            {
                tuple(tokens(ids)): score
                for ids, score in zip(
                    *(f[n][row] for n in ("ids", "scores")), strict=True
                )
                if np.isfinite(score)
            }
            for f in (grouped, plain)
        )
        assert len(scores) == np.isfinite(grouped["scores"][row]).sum()
        assert {ids: scores.get(ids) for ids in expected} == pytest.approx(
            expected, rel=1e-6
        )


def test_a_high_penalty_makes_first_words_differ():
    model = ToyModel(vocabulary_size=9, seed=2)
    ids = run(model, num_beams=4, num_groups=4, diversity_penalty=1e3)["ids"]
    for row in ids:
        assert len(set(row[:, 0].tolist())) == 4


def test_groups_must_have_equally_many_beams():
    with pytest.raises(UserError, match="`num_groups` must divide"):
        beam_search(
            ToyModel(), SOURCES, num_beams=4, num_groups=3, max_length=LONGEST
        )
