"""What must be true of splitting a text into sentences.

* abbreviations and ordinal numbers of the language end no sentence
* only white space stands between the sentences, and none is lost
* the package is optional
"""

import sys

import pytest

from keras_deepnmt.documents import SentenceSplitter
from keras_deepnmt.errors import UserError

NEEDED = "needs the extra [sentences]"


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", ["Das ist z.B. ein Hund.", "Am 3. Mai kam er.", "Gut!"]),
        ("en", ["Mr. Smith went home.", "Did he?", "Yes."]),
        ("zh", ["你好。", "我很好！", "谢谢"]),
        ("zh-Hant", ["你好。", "我很好！"]),
        ("de_AT", ["Am 3. Mai kam er.", "Gut!"]),
        ("de", ["ohne Ende"]),
        ("de", []),
    ],
)
@pytest.mark.parametrize("space", [" ", "  ", "\t", "\n", "\u3000"])
def test_sentences_are_found(language, sentences, space):
    pytest.importorskip("sentencex", reason=NEEDED)
    text = f"{space}{space.join(sentences)}{space}"
    spans = SentenceSplitter(language).spans(text)
    assert [text[begin:end] for begin, end in spans] == sentences


def test_sentences_need_no_space_between_them():
    pytest.importorskip("sentencex", reason=NEEDED)
    text = "你好。我很好！"
    assert SentenceSplitter("zh").spans(text) == [(0, 3), (3, 7)]


def test_a_language_without_a_name_is_refused():
    with pytest.raises(UserError, match="must be the code of a language"):
        SentenceSplitter(" ")


def test_the_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(UserError, match=r"keras_deepnmt\[sentences\]"):
        SentenceSplitter("de")
