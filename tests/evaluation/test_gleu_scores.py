"""What must be true of GLEU (Napoles et al., 2015 and 2016).

* random sentences, and a real corpus, have the scores of the authors' program
* a kept mistake costs what a right word brings
* an empty line is not a reference
"""

import math
import random

import pytest

from keras_deepnmt.evaluation import (
    compare_gleu,
    corpus_gleu,
    sentence_gleu,
)
from keras_deepnmt.evaluation.gleu_scores import gleu_counts

SOURCE = "the cat sat at mat"
REFERENCE = "the cat sat on the mat"


def random_texts(generator, number):
    """Sources, hypotheses and three sets of references."""
    lines = [
        [
            " ".join(generator.choices("abcd", k=generator.randint(3, 9)))
            for _ in range(number)
        ]
        for _ in range(2)
    ]

    def changed(line):
        words = [
            generator.choice("abcde") if generator.random() < 0.3 else word
            for word in line.split()
        ]
        return " ".join(words[generator.randint(0, 1) :])

    sources, others = lines
    hypotheses = [
        changed(line) if generator.random() < 0.9 else other
        for line, other in zip(sources, others, strict=True)
    ]
    references = [[changed(line) for line in sources] for _ in range(3)]
    return sources, hypotheses, references


# Printed by eval/gleu.py of keisks/jfleg, commit
# ee06ff806a208aba815ac45313f4e750a48330a5, in Python 3.11.
CORPUS = {1: 0.176409, 3: 0.141818}
SENTENCES = [
    0.281416,
    0.232013,
    0.246814,
    0.705520,
    0.684653,
    0.719538,
    0.497422,
    0.393889,
    0.229345,
    0.759295,
    0.221260,
    0.287564,
    0.407928,
    0.679241,
    0.277762,
    0.527897,
]


def test_random_sentences_have_the_scores_of_the_authors_program():
    sources, hypotheses, references = random_texts(random.Random(37), 60)
    for number, expected in CORPUS.items():
        score = corpus_gleu(
            hypotheses, sources, references[0], references[1:number]
        )
        assert score.value / 100 == pytest.approx(expected, abs=6e-7)
        assert score.signature.startswith(f"nrefs:{number}|")
    found = sentence_gleu(hypotheses, sources, references[0], references[1:])
    found = [value / 100 for value in found[: len(SENTENCES)]]
    assert found == pytest.approx(SENTENCES, abs=6e-7)


def test_uncorrected_english_has_the_score_of_the_authors_program(corpora_dir):
    source, *references = (
        (corpora_dir / "jfleg" / f"test.{name}")
        .read_text(encoding="utf-8")
        .splitlines()
        for name in ("src", "ref0", "ref1", "ref2", "ref3")
    )
    score = corpus_gleu(source, source, references[0], references[1:])
    assert score.value == pytest.approx(40.4740, abs=6e-5)


def test_a_kept_mistake_costs_what_a_right_word_brings():
    # Four of five words match, and "at" is a mistake that was kept. Of the
    # longer n-grams as many or more are mistakes as match.
    assert corpus_gleu([SOURCE], [SOURCE], [REFERENCE]).value == 0
    # In the score of a sentence, 1 stands for a sum of 0.
    precisions = [(4 - 1) / 5, 1 / 4, 1 / 3, 1 / 2]
    expected = math.exp(1 - 6 / 5 + sum(map(math.log, precisions)) / 4)
    (found,) = sentence_gleu([SOURCE], [SOURCE], [REFERENCE])
    assert found == pytest.approx(100 * expected)


def test_the_reference_itself_has_the_full_score():
    score = corpus_gleu([REFERENCE], [SOURCE], [REFERENCE], num_resamples=10)
    assert score.value == pytest.approx(100)
    assert score.interval == pytest.approx(0)


def test_an_empty_line_is_no_reference():
    alone = corpus_gleu([REFERENCE], [SOURCE], [REFERENCE])
    with_empty = corpus_gleu([REFERENCE], [SOURCE], [REFERENCE], [[""]])
    assert with_empty.value == alone.value


def test_an_empty_reference_changes_no_mean_over_references():
    hypotheses, sources = ["a b c d", "e f g h"], ["a b c", "e g h"]
    first, other = ["a b c d", "e f g h"], ["a b c x", "e f g y"]
    alone, with_empty = [other], [other, ["", "e f h"]]
    found, expected = (
        sentence_gleu(hypotheses, sources, first, more)
        for more in (with_empty, alone)
    )
    assert found[0] == pytest.approx(expected[0]) != 100
    assert found[1] != pytest.approx(expected[1])
    found, expected = (
        gleu_counts(hypotheses, sources, first, more)
        for more in (with_empty, alone)
    )
    assert found[0] == pytest.approx(expected[0])
    found, expected = (
        corpus_gleu(hypotheses, sources, first, more, 100).interval
        for more in ([other, ["", ""]], alone)
    )
    assert found == pytest.approx(expected) != 0


def test_intervals_and_tests_are_those_of_samples_of_sentences():
    sources, hypotheses, references = random_texts(random.Random(1), 40)
    first, *more = references
    score = corpus_gleu(hypotheses, sources, first, more, num_resamples=200)
    assert 0 < score.interval < 50
    found = compare_gleu(hypotheses, sources, sources, first, more, 100, 100)
    base = corpus_gleu(sources, sources, first, more)
    assert found.difference == pytest.approx(score.value - base.value)
    assert 0 < found.randomization_p_value <= 1
    same = compare_gleu(sources, sources, sources, first, more, 100, 100)
    assert (same.difference, same.randomization_p_value) == (0, 1)


def test_texts_of_different_length_are_refused():
    with pytest.raises(ValueError, match="`sources`"):
        corpus_gleu(["a"], [], ["a"])
