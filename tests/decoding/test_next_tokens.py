"""What must be true of the rules about which token may follow.

* a large beam finds what brute force finds among the permitted outputs
* a search with one beam is greedy search
* the reported sum of log-probabilities is that of the output
* no rule leaves a sentence without a translation
"""

import itertools

import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, run, tokens

from keras_deepnmt.decoding import SearchOptions, beam_search, greedy_search

LONGEST = 4
RULES = [
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 3},
    {"allow_unknown": False},
    {"no_repeat_ngram_size": 2, "min_length": 2},
    # Two words that must not be repeated cannot make three tokens.
    {"no_repeat_ngram_size": 1, "allow_unknown": False, "min_length": 3},
]
# By default those of several rules.
CASES = [
    *(pytest.param(one, marks=pytest.mark.thorough) for one in RULES[:-2]),
    *RULES[-2:],
]


def has_repeated_ngram(words, size):
    ngrams = [
        tuple(words[start : start + size])
        for start in range(len(words) - size + 1)
    ]
    return len(ngrams) > len(set(ngrams))


def is_permitted(model, target, options):
    """Whether the rules permit an output, read off the output alone."""
    words = target[:-1]
    size = options.no_repeat_ngram_size
    if not options.allow_unknown and 1 in words:
        return False
    if size and has_repeated_ngram(words, size):
        return False
    if len(words) >= options.min_length or len(target) == LONGEST:
        return True
    # Too short: only if nothing could follow.
    following = [1] if options.allow_unknown else []
    following += range(4, model.target_vocabulary_size)
    return size > 0 and all(
        has_repeated_ngram([*words, word], size) for word in following
    )


@pytest.mark.parametrize("rules", CASES, ids=str)
def test_large_beam_finds_what_brute_force_finds(rules):
    options = SearchOptions(num_beams=41, **rules)
    model = ToyModel()
    for seed in range(3):
        model.draw_weights(seed, scale=1.0)
        outputs = run(model, beam_search, max_length=LONGEST, options=options)
        for row, source in enumerate(SOURCES):
            ranked = sorted(
                (
                    (
                        model.reference_log_prob(source, target)
                        / ((5 + len(target)) / 6) ** 0.6,
                        target,
                    )
                    for target in model.all_targets(LONGEST)
                    if is_permitted(model, target, options)
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


@pytest.mark.thorough
@pytest.mark.parametrize("rules", CASES, ids=str)
def test_greedy_search_is_a_search_with_one_beam(rules):
    model = ToyModel(vocabulary_size=7)
    for seed in range(5):
        model.draw_weights(seed)
        greedy = run(model, greedy_search, max_length=9, **rules)
        beam = run(model, beam_search, num_beams=1, max_length=9, **rules)
        for name in greedy:
            np.testing.assert_allclose(greedy[name], beam[name][:, 0], 1e-5)
        for row, source in enumerate(SOURCES):
            target = tokens(greedy["ids"][row])
            assert target[-1] == 3
            assert greedy["log_probs"][row] == pytest.approx(
                model.reference_log_prob(source, target), rel=1e-4
            )


@pytest.mark.thorough
@pytest.mark.parametrize("function", [beam_search, greedy_search])
@pytest.mark.parametrize("max_length", [1, 2, 12])
def test_every_sentence_has_a_translation(function, max_length):
    rules = {"no_repeat_ngram_size": 1, "min_length": 9}
    outputs = run(ToyModel(), function, max_length=max_length, **rules)
    ids = outputs["ids"].reshape(len(SOURCES), -1, max_length)[:, 0]
    # The toy language has three words.
    longest = min(max_length, 4)
    assert ((ids != 0).sum(-1) == longest).all()
    assert (ids[:, longest - 1] == 3).all()


@pytest.mark.thorough
def test_long_ngrams_and_short_outputs_go_together():
    model = ToyModel(vocabulary_size=9)
    free = run(model, beam_search, max_length=3)
    ruled = run(model, beam_search, max_length=3, no_repeat_ngram_size=7)
    for name in free:
        np.testing.assert_array_equal(free[name], ruled[name])


def test_a_loop_of_the_model_is_broken():
    """The first n-gram that would be repeated is not produced."""
    model = ToyModel(vocabulary_size=12)
    for seed, size in itertools.product(range(10), (1, 2, 3)):
        model.draw_weights(seed)
        options = {"max_length": 12, "no_repeat_ngram_size": size}
        for row in run(model, greedy_search, **options)["ids"]:
            assert not has_repeated_ngram(tokens(row), size)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"no_repeat_ngram_size": -1}, ValueError),
        ({"no_repeat_ngram_size": 1.5}, ValueError),
        ({"allow_unknown": 1}, TypeError),
    ],
)
def test_wrong_values_are_refused(wrong, error):
    (name,) = wrong
    with pytest.raises(error, match=f"`{name}` must be"):
        SearchOptions(**wrong)
