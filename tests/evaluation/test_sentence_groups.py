"""What must be true of scores of groups of sentences.

* each sentence is in one group, that of its length or of its rarest word
* the BLEU of a group is that of its sentences
"""

import pytest

from keras_deepnmt.evaluation import (
    bleu_by_rarest_word,
    bleu_by_source_length,
    corpus_scores,
    word_frequencies,
)

SOURCES = ["w " * n for n in (3, 10, 11, 20, 21, 60)]
REFERENCES = [f"{letter} b c d e ." for letter in "uvwxyz"]
HYPOTHESES = [*REFERENCES[:3], *(line[2:] for line in REFERENCES[3:])]


def test_sentences_are_grouped_by_source_length():
    groups = bleu_by_source_length(SOURCES, HYPOTHESES, REFERENCES)
    assert [group.label for group in groups] == [
        "0-10",
        "11-20",
        "21-30",
        ">= 51",
    ]
    assert [group.num_sentences for group in groups] == [2, 2, 1, 1]
    assert groups[0].bleu.value == pytest.approx(100)
    expected = corpus_scores(HYPOTHESES[2:4], REFERENCES[2:4], ["bleu"])["bleu"]
    assert groups[1].bleu == expected
    one = bleu_by_source_length(SOURCES, HYPOTHESES, REFERENCES, limits=[])
    assert [group.num_sentences for group in one] == [6]


def test_sentences_are_grouped_by_their_rarest_word():
    frequencies = word_frequencies(["u b c d e ."] * 9 + ["v b c d e ."] * 2)
    groups = bleu_by_rarest_word(HYPOTHESES, REFERENCES, frequencies)
    assert [(group.label, group.num_sentences) for group in groups] == [
        ("0", 4),
        ("1-4", 1),
        ("5-9", 1),
    ]
    assert groups[2].bleu.value == pytest.approx(100)


def test_words_are_those_of_the_tokenizer_and_case():
    frequencies = word_frequencies(["A dog."], lowercase=True)
    assert frequencies == {"a": 1, "dog": 1, ".": 1}
    assert word_frequencies(["A dog."], "none") == {"A": 1, "dog.": 1}
    (group,) = bleu_by_rarest_word(
        ["A dog."], ["A dog."], frequencies, lowercase=True
    )
    assert group.label == "1-4"


def test_references_without_words_belong_to_no_group():
    groups = bleu_by_rarest_word(["a", ""], ["a", ""], {"a": 7})
    assert [group.num_sentences for group in groups] == [1]
