"""What must be true of every search that can keep all hypotheses.

Over 1,000 random models, sources, beginnings, maximum lengths and options, it
finds what loops over all translations find, in the same order, with the same
scores.

The structure of the options (what needs a compilation of its own) is fixed for
each of some searches; everything else is drawn anew for each model.
"""

import functools

import keras
import numpy as np
import pytest
from attentive_toy_model import AttentiveToyModel
from toy_model import DECAY

from keras_deepnmt.decoding import SearchOptions, beam_search, compile_for

LONGEST = 4
# There are 40 translations of at most 4 tokens.
NUM_BEAMS = 41
WORDS = (1, 4, 5)
# On JAX, which compiles each search, a few for each of them.
IS_ON_JAX = keras.backend.backend() == "jax"
SEEDS = 260 if IS_ON_JAX else 1000
SEARCHES = (
    {},
    {"no_repeat_ngram_size": 1, "min_length": 2},
    {"no_repeat_ngram_size": 2, "allow_unknown": False},
    {"min_length": 3, "allow_unknown": False},
    {"phrases": True},
    {"phrases": True, "min_length": 2},
    {"phrases": True, "no_repeat_ngram_size": 1},
    {"phrases": True, "no_repeat_ngram_size": 2, "allow_unknown": False},
    {"own_limits": True, "min_length": 2},
    {"own_limits": True, "phrases": True},
    {"coverage_penalty": 0.3},
    {"coverage_penalty": 1.5, "no_repeat_ngram_size": 2, "min_length": 2},
    {"coverage_penalty": 0.7, "phrases": True},
)


def next_log_probs(model, source):
    """A function of words that gives the log-probabilities of what follows."""
    source_table, target_table, kernel = (
        np.asarray(variable, "float64") for variable in model.variables
    )
    context = source_table[source[source != 0]].sum(0)

    @functools.cache
    def state(words):
        before = DECAY * state(words[:-1]) if words else 0.0
        return before + target_table[words[-1] if words else 2]

    @functools.cache
    def log_probs(words):
        scores = np.tanh(state(words) + context) @ kernel
        return scores - np.log(np.exp(scores).sum())

    return log_probs


def occurrences(words, phrase):
    starts = range(len(words) - len(phrase) + 1)
    return [words[s : s + len(phrase)] for s in starts].count(phrase)


def missing(words, phrases):
    return [
        phrase
        for place, phrase in enumerate(phrases)
        if occurrences(words, phrase) <= phrases[:place].count(phrase)
    ]


def has_room(words, phrase, limit):
    begun = max(
        number
        for number in range(len(phrase))
        if words[len(words) - number :][:number] == phrase[:number]
        and number <= len(words)
    )
    return len(words) + len(phrase) - begun < limit


def repeats(words, size):
    """Whether the last n-gram has occurred before."""
    last = words[len(words) - size :]
    return 0 < size <= len(words) and occurrences(words, last) > 1


def all_translations(case, words=(), total=0.0):
    """Yields the permitted translations and their sums of log-probabilities."""
    options, length = case["options"], len(words)
    log_probs = case["log_probs"](words)
    end = [((*words, 3), total + log_probs[3])]
    if length == case["limit"] - 1:
        yield from end
        return
    following = [
        word
        for word in WORDS[not options.allow_unknown :]
        if not repeats((*words, word), options.no_repeat_ngram_size)
    ]
    is_forced = length < len(case["prefix"])
    if is_forced:
        following = [case["prefix"][length]]
    is_early = length < options.min_length or any(
        has_room(words, phrase, case["limit"])
        for phrase in missing(words, case["possible"])
    )
    if not following or not (is_early or is_forced):
        yield from end
    for word in following:
        grown = total + log_probs[word]
        yield from all_translations(case, (*words, word), grown)


def score(case, ids, total):
    """The score of a translation with a sum of log-probabilities."""
    options = case["options"]
    lengths = options.length_offset + np.array([len(ids), 1])
    divisor = (lengths[0] / lengths[1]) ** options.length_penalty
    if not options.coverage_penalty:
        return total / divisor
    return total / divisor + options.coverage_penalty * case["coverage"](ids)


def expected(case):
    """The translations that the search keeps, best first."""
    options = case["options"]
    found = [
        (
            len(missing(ids[:-1], case["possible"])),
            -score(case, ids, total),
            ids,
            total,
        )
        for ids, total in all_translations(case)
    ]
    if options.patience:
        # The search ends with the first length that gives enough of them.
        counting = sorted(len(ids) for missed, _, ids, _ in found if not missed)
        enough = int(np.ceil(np.float32(options.patience) * NUM_BEAMS))
        if len(counting) >= enough:
            last = counting[enough - 1]
            found = [entry for entry in found if len(entry[2]) <= last]
    return sorted(found)


def draw_sentence(draw, has_phrases):
    """A source, a beginning and phrases, at most of the sizes of the arrays."""
    source = [*draw.integers(4, 17, draw.integers(0, 4)), 3]
    prefix = draw.choice(WORDS, draw.choice([0, 0, 0, 1, 2]))
    phrases = [
        tuple(draw.choice(WORDS, draw.integers(1, 4)).tolist())
        for _ in range(draw.integers(0, 4) if has_phrases else 0)
    ]
    return source, tuple(prefix.tolist()), phrases


def as_array(rows, *shape):
    array = np.zeros(shape, "int32")
    for row, ids in enumerate(rows):
        array[row, : len(ids)] = ids
    return array


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(SEARCHES)))
def test_it_finds_what_brute_force_finds(number):
    structure = dict(SEARCHES[number])
    has_phrases = structure.pop("phrases", False)
    has_limits = structure.pop("own_limits", False)
    model = AttentiveToyModel()
    search = compile_for(model, beam_search, jit_compile=IS_ON_JAX)
    for seed in range(number, SEEDS, len(SEARCHES)):
        draw = np.random.default_rng(seed)
        model.draw_weights(seed, scale=draw.uniform(0.5, 3.0))
        options = SearchOptions(
            num_beams=NUM_BEAMS,
            length_penalty=draw.choice([0.0, draw.uniform(0, 2)]),
            length_offset=draw.uniform(0, 6),
            patience=draw.choice([0.0, 0.0, draw.uniform(0, 1)]),
            max_length_ratio=draw.choice([0.5, 1.0, 3.0]),
            max_extra_tokens=1,
            **structure,
        )
        rows = [draw_sentence(draw, has_phrases) for _ in range(2)]
        sources, prefixes, phrases = zip(*rows, strict=True)
        source_ids = as_array(sources, 2, 4)
        phrase_ids = np.stack([as_array(p, 3, 3) for p in phrases])
        own_limits = draw.integers(0, LONGEST + 2, 2).astype("int32")
        found = search(
            source_ids,
            as_array(prefixes, 2, 2),
            phrase_ids if has_phrases else None,
            own_limits if has_limits else None,
            options=options,
            max_length=LONGEST,
        )
        for row in range(2):
            limit = np.ceil(options.max_length_ratio * len(sources[row])) + 1
            if has_limits:
                limit = own_limits[row] or limit
            limit = min(LONGEST, max(limit, len(prefixes[row]) + 1))
            allowed = WORDS[not options.allow_unknown :]
            case = {
                "options": options,
                "log_probs": next_log_probs(model, source_ids[row]),
                "coverage": functools.partial(
                    model.reference_coverage, source_ids[row]
                ),
                "limit": limit,
                "prefix": prefixes[row],
                "possible": [
                    phrase
                    for phrase in phrases[row]
                    if len(phrase) < limit and {*phrase} <= {*allowed}
                ],
            }
            check(found, row, expected(case), (seed, row))
            if has_phrases:
                is_complete = case["possible"] == phrases[row]
                check_marks(found, row, expected(case), is_complete)


def check(found, row, ranked, place):
    size = len(ranked)
    _, scores, translations, totals = zip(*ranked, strict=True)
    by_ids = dict(zip(translations, totals, strict=True))
    ids = [tuple(t[t != 0].tolist()) for t in found["ids"][row, :size]]
    # Two that are equal up to rounding may change places.
    assert sorted(ids) == sorted(translations), place
    found_scores = found["scores"][row]
    np.testing.assert_allclose(-found_scores[:size], scores, 1e-4, 1e-4)
    np.testing.assert_allclose(
        found["log_probs"][row, :size], [by_ids[i] for i in ids], 1e-4, 1e-4
    )
    assert not found["ids"][row, size:].any(), place
    assert np.isneginf(found_scores[size:]).all(), place


def check_marks(found, row, ranked, is_complete):
    marks = [not missed and is_complete for missed, *_ in ranked]
    assert found["constraints_met"][row, : len(marks)].tolist() == marks
    assert not found["constraints_met"][row, len(marks) :].any()
