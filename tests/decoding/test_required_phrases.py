"""What must be true of phrases that translations must contain.

* a large beam finds what brute force finds, also together with other options
* phrases may overlap, be equal, begin alike, and be too long
* a small beam finds translations that contain all phrases that have room
* the sum of log-probabilities is the model's
* rows without phrases are as in a search without any
* a phrase that cannot be contained does not make the search fail
"""

import functools

import keras
import numpy as np
import pytest
from toy_model import SOURCES, ToyModel, tokens

from keras_deepnmt.decoding import (
    SearchOptions,
    beam_search,
    compile_for,
    search,
)
from keras_deepnmt.errors import UserError

LONGEST = 4
NO_PREFIX = np.zeros((3, 2), "int32")
ON_JAX = keras.backend.backend() == "jax"
# Three sentences each; the last of `EQUAL` has none.
ONE_TOKEN = [[[5]], [[4], [1]], [[1], [5]]]
LONGER = [[[5, 4]], [[4, 4]], [[1, 5, 4]]]
ALIKE = [[[5, 4], [5, 1]], [[4, 5], [4]], [[1, 4], [1, 5]]]
OVERLAPPING = [[[5, 4], [4, 1]], [[4, 4, 5], [4, 5]], [[5, 5], [5]]]
EQUAL = [[[5], [5]], [[4, 4], [4, 4]], []]
TOO_LONG = [[[5, 4, 1, 4]], [[4, 1, 4, 1], [5]], [[1, 1, 1], [5, 5]]]


def as_ids(sentences):
    """Phrases of each sentence as an array filled up with 0s."""
    # One shape, so that there is one compilation.
    ids = np.zeros((len(sentences), 3, 4), "int32")
    for row, phrases in enumerate(sentences):
        for place, phrase in enumerate(phrases):
            ids[row, place, : len(phrase)] = phrase
    return ids


@functools.cache
def compiled_for(vocabulary_size=6, jit_compile=ON_JAX):
    """A model of a size and its search; on JAX a graph is made every time."""
    model = ToyModel(vocabulary_size)
    return model, compile_for(model, beam_search, jit_compile)


def run(sentences, size=6, seed=2, max_length=LONGEST, **options):
    model, compiled = compiled_for(size)
    model.draw_weights(seed)
    return compiled(
        SOURCES, NO_PREFIX, as_ids(sentences), max_length=max_length, **options
    )


def missed(words, phrases):
    """The phrases that a translation lacks; equal ones count one by one."""
    lacking = []
    for place, phrase in enumerate(phrases):
        starts = range(len(words) - len(phrase) + 1)
        found = [words[s : s + len(phrase)] for s in starts].count(phrase)
        if found <= phrases[:place].count(phrase):
            lacking.append(phrase)
    return lacking


def has_room(words, phrase, longest):
    """Whether the rest of a phrase fits between the words and the end."""
    begun = max(
        number
        for number in range(len(phrase))
        if number <= len(words)
        and words[len(words) - number :] == phrase[:number]
    )
    return len(words) + len(phrase) - begun < longest


def may_end(words, phrases, longest):
    return len(words) == longest - 1 or not any(
        has_room(words, phrase, longest) for phrase in missed(words, phrases)
    )


def repeats(words, size):
    ngrams = [tuple(words[s : s + size]) for s in range(len(words) - size + 1)]
    return len(ngrams) > len(set(ngrams))


def is_permitted(model, words, phrases, prefix, options):
    """Whether the rules permit a translation, read off the translation."""
    size = options.no_repeat_ngram_size
    if words[: len(prefix)] != prefix or (size and repeats(words, size)):
        return False
    if len(words) == LONGEST - 1:
        return True
    following = [1, *range(4, model.target_vocabulary_size)]
    if size and all(repeats([*words, word], size) for word in following):
        return True
    return len(words) >= options.min_length and may_end(words, phrases, LONGEST)


def ranked_by_brute_force(model, source, phrases, prefix, options):
    ranked = [
        (
            len(missed(target[:-1], phrases)),
            -model.reference_log_prob(source, target)
            / ((5 + len(target)) / 6) ** 0.6,
            target,
        )
        for target in model.all_targets(LONGEST)
        if is_permitted(model, target[:-1], phrases, prefix, options)
    ]
    return sorted(ranked)


def check_against_brute_force(
    sentences, prefixes=NO_PREFIX, seeds=2, jit_compile=ON_JAX, **options
):
    options = SearchOptions(num_beams=41, **options)
    model, compiled = compiled_for(jit_compile=jit_compile)
    for seed in range(seeds):
        model.draw_weights(seed, scale=1.0)
        found = compiled(
            SOURCES,
            prefixes,
            as_ids(sentences),
            max_length=LONGEST,
            options=options,
        )
        for row, source in enumerate(SOURCES):
            prefix = tokens(prefixes[row])
            ranked = ranked_by_brute_force(
                model, source, sentences[row], prefix, options
            )
            numbers, scores, targets = zip(*ranked, strict=True)
            size = len(targets)
            ids = [tokens(ids) for ids in found["ids"][row, :size]]
            assert ids == list(targets)
            np.testing.assert_allclose(
                -found["scores"][row, :size], scores, 1e-4
            )
            np.testing.assert_array_equal(
                found["constraints_met"][row, :size], np.array(numbers) == 0
            )
            assert not found["ids"][row, size:].any()
            assert not found["constraints_met"][row, size:].any()


@pytest.mark.parametrize(
    "sentences",
    [
        pytest.param(ONE_TOKEN, marks=pytest.mark.thorough),
        pytest.param(LONGER, marks=pytest.mark.thorough),
        ALIKE,
        OVERLAPPING,
        EQUAL,
        TOO_LONG,
    ],
    ids=["one_token", "longer", "alike", "overlapping", "equal", "too_long"],
)
def test_large_beam_finds_what_brute_force_finds(sentences):
    check_against_brute_force(sentences)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {"no_repeat_ngram_size": 1},
        {"min_length": 2},
        {"min_length": 3, "no_repeat_ngram_size": 2},
    ],
    ids=str,
)
def test_rules_and_phrases_find_what_brute_force_finds(options):
    for sentences in ALIKE, EQUAL:
        check_against_brute_force(sentences, seeds=1, **options)


def test_prefixes_and_phrases_find_what_brute_force_finds():
    prefixes = np.array([[5, 4], [4, 0], [0, 0]], "int32")
    for sentences in ALIKE, OVERLAPPING:
        check_against_brute_force(sentences, prefixes)


@pytest.mark.thorough
def test_compiled_finds_what_brute_force_finds():
    check_against_brute_force(OVERLAPPING, jit_compile=True)


@pytest.mark.thorough
def test_every_group_contains_the_phrases():
    options = {"num_beams": 6, "num_groups": 3, "diversity_penalty": 3.0}
    found = run(ALIKE, 9, max_length=9, **options)
    assert found["constraints_met"].sum(axis=1).min() >= 3
    for row, phrases in enumerate(ALIKE):
        for ids, is_met in zip(
            found["ids"][row], found["constraints_met"][row], strict=True
        ):
            assert is_met == (not missed(tokens(ids)[:-1], phrases))


@pytest.mark.thorough
def test_a_small_beam_finds_loops_of_phrases_that_have_room():
    sentences = [[[7, 9, 8]], [[6, 5], [6, 6], [4]], [[10], [10], [5, 10]]]
    model, compiled = compiled_for(11)
    for seed in range(8):
        model.draw_weights(seed)
        found = compiled(
            SOURCES,
            NO_PREFIX,
            as_ids(sentences),
            max_length=12,
            num_beams=3,
        )
        for row, source in enumerate(SOURCES):
            best = tokens(found["ids"][row, 0])
            assert not missed(best, sentences[row])
            assert found["constraints_met"][row, 0]
            assert found["log_probs"][row, 0] == pytest.approx(
                model.reference_log_prob(source, best), rel=1e-4
            )


def without_phrases(size, seed, max_length):
    model, _ = compiled_for(size)
    model.draw_weights(seed)
    compiled = compile_for(model, beam_search, ON_JAX)
    return compiled(SOURCES, NO_PREFIX, max_length=max_length)


@pytest.mark.thorough
def test_rows_without_phrases_are_not_changed():
    free = without_phrases(9, 1, 9)
    mixed = run(EQUAL, 9, 1, 9)
    for name in free:
        np.testing.assert_array_equal(mixed[name][2], free[name][2])
    assert mixed["constraints_met"][2].all()


@pytest.mark.thorough
def test_phrases_without_room_change_nothing_but_the_mark():
    free = without_phrases(6, 1, LONGEST)
    found = run([[[5, 4, 1, 4]], [[99]], [[4, 3]]], 6, 1)
    assert not found.pop("constraints_met").any()
    for name in free:
        np.testing.assert_array_equal(found[name], free[name])


@pytest.mark.thorough
def test_patience_counts_translations_with_all_phrases():
    for seed in range(5):
        options = SearchOptions(patience=0.25)
        found = run(ALIKE, 9, seed, 9, options=options)
        assert found["constraints_met"][:, 0].all()


@pytest.mark.thorough
def test_tokens_that_are_never_produced_do_not_make_the_search_fail():
    """The end token, an unknown token that is forbidden, an unknown number."""
    sentences = [[[5, 3]], [[1], [4]], [[99], [5]]]
    found = run(sentences, allow_unknown=False)
    assert np.isfinite(found["scores"][:, 0]).all()
    assert not found["constraints_met"].any()
    for row, token in ((1, 4), (2, 5)):
        assert token in found["ids"][row, 0]


@pytest.mark.thorough
def test_a_row_of_padding_has_no_translation():
    _, compiled = compiled_for()
    sources = SOURCES.copy()
    sources[1] = 0
    found = compiled(sources, NO_PREFIX, as_ids(ONE_TOKEN), max_length=LONGEST)
    assert found["constraints_met"][0, 0]
    assert not found["constraints_met"][1].any()
    assert not found["ids"][1].any()


@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 1},
        {"num_beams": 4, "num_groups": 4},
        {"num_beams": 4, "sampling": True},
    ],
    ids=str,
)
def test_searches_without_a_choice_are_refused(options):
    with pytest.raises(UserError, match="Phrases that translations must"):
        search(
            ToyModel(),
            SOURCES,
            constraint_ids=as_ids(ALIKE),
            max_length=LONGEST,
            **options,
        )


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="`constraint_ids` must have the sh"):
        beam_search(ToyModel(), SOURCES, None, SOURCES, max_length=LONGEST)


def test_numbers_of_a_tensor_are_the_phrases():
    """Tensors and arrays are the same to the search."""
    ids = keras.ops.convert_to_tensor(as_ids(ONE_TOKEN))
    found = search(
        ToyModel(), SOURCES, constraint_ids=ids, max_length=LONGEST, num_beams=5
    )
    assert np.asarray(found["constraints_met"])[:, 0].all()
