"""What must be true of translations that a report shows side by side.

* words that the reference does not have in this place are marked, no others
* of a long text the sentences that tell most are kept, with their places
* pieces are shown as readers know words
* numbers in tables are known as numbers
"""

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_deepnmt.analysis import sentences
from keras_deepnmt.analysis.analyzed_run import shown_pieces
from keras_deepnmt.analysis.report_page import Section, report_page
from keras_deepnmt.analysis.sentences import compared_words, sentence_figure
from keras_deepnmt.runs.test_translations import TestTranslations


def marks(text, reference):
    return [
        part for part in compared_words(text, reference) if part[1] is not None
    ]


def test_words_that_differ_from_the_reference_are_marked():
    assert marks("a dog sleeps", "a dog sleeps") == []
    assert marks("a big dog sleeps well", "a dog sleeps") == [
        *(("big", ""), ("well", "")),
    ]
    assert marks("the  old dog", "a dog") == [("the  old", "a")]
    assert marks("a dog", "") == [("a dog", "")]
    # A script without spaces is marked by letters.
    assert marks("我有狗", "我有猫") == [("狗", "猫")]


def test_words_that_are_missing_are_marked():
    assert compared_words("They are brave", "They are not brave") == [
        *(("They are ", None), ("", "not"), ("brave", None)),
    ]
    assert marks("a dog", "so a dog sleeps") == [("", "so"), ("", "sleeps")]
    assert marks("", "a dog") == [("", "a dog")]


def test_parts_give_the_text_and_the_reference():
    draw = random.Random(0)
    for _ in range(300):
        text, reference = (
            " ".join(draw.choices("abcd", k=draw.randrange(8)))
            for _ in range(2)
        )
        parts = compared_words(text, reference)
        assert "".join(part for part, _ in parts) == text
        there = [part if other is None else other for part, other in parts]
        assert " ".join(there).split() == reference.split()


def translations(*systems, references):
    names = [f"run-{number}" for number in range(len(systems))]
    return TestTranslations(
        None,
        list(references),
        dict(zip(names, systems, strict=True)),
        {},
        {"tokenize": "none", "lowercase": False},
    )


def test_of_a_long_text_the_sentences_that_tell_most_are_kept(monkeypatch):
    monkeypatch.setattr(sentences, "MOST_SENTENCES", 20)
    monkeypatch.setattr(sentences, "_FIRST", 2)
    references = [f"a b c d e {number}" for number in range(100)]
    one, other = list(references), list(references)
    one[33] = other[33] = "x"
    one[57] = "y"
    figure = sentence_figure(translations(one, other, references=references))
    assert {33, 57} <= set(figure.places) and len(figure.places) <= 20
    assert list(figure.places) == sorted(figure.places)
    assert max(figure.places) >= 90
    row = list(figure.places).index(57)
    assert figure.references[row] == references[57]
    assert [lines[row] for lines in figure.systems.values()] == [
        *("y", references[57]),
    ]
    assert figure.spread(row) == pytest.approx(100.0)
    assert "of 100 sentences" in figure.caption


def test_the_documentation_says_how_many_sentences_are_kept():
    docs = Path(__file__).parents[2] / "docs" / "cli.md"
    expected = f"at most {sentences.MOST_SENTENCES} sentences"
    assert expected in docs.read_text("utf-8")


def test_a_page_has_the_sentences_with_their_marks():
    text = translations(
        ["a <b> cat"], ["a dog & cat"], references=["a dog & cat"]
    )
    page = report_page("Title", [Section("Part", [[sentence_figure(text)]])])
    assert 'data-value="reference: dog &amp;">&lt;b&gt;</mark> cat' in page
    assert '<p dir="auto">a dog &amp; cat</p>' in page
    assert "run-1 · BLEU 100.0" in page
    assert page.index("run-0 · BLEU") < page.index("run-1 · BLEU")


def pieces(text, marks_word_ends=False):
    tokenizer = SimpleNamespace(
        pieces=lambda ids: text.split(),
        marks_word_ends=marks_word_ends,
        separator="",
    )
    return shown_pieces(tokenizer, [])


def test_pieces_are_shown_as_words_and_their_parts():
    assert pieces("▁der ▁Hund e . </s>") == ["der", "Hund", "-e", ".", "</s>"]
    assert pieces("der▁ Hund e▁ </s>", True) == ["der", "Hund", "-e", "</s>"]
    assert pieces("▁guten▁Tag ▁ a") == ["guten Tag", "␣", "-a"]
    assert pieces("▁我 有 狗 </s>") == ["我", "有", "狗", "</s>"]
    assert pieces("▁我 有 ▁iOS 狗") == ["我", "有", "iOS", "狗"]
