"""Where case is factored, an export and a translator do the same."""

import pytest
import tensorflow as tf
from tiny_translator import all_pairs, make_translator

from keras_deepnmt.data.letter_case import (
    CASE_SYMBOLS,
)
from keras_deepnmt.serving import exporting

pytestmark = pytest.mark.thorough
PAIRS = [
    pair
    for source, target in all_pairs()
    for pair in (
        (f"D{source[1:]}", f"T{target[1:].upper()}"),
        (source.upper(), target.title()),
    )
]
SOURCES = [
    *("Der HUND sieht den Löwe .", "DER MANN", "", "der LÖWEs Baum"),
    *(source for source, _ in PAIRS[:16]),
]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return make_translator(
        tmp_path_factory.mktemp("factored"),
        case="factored",
        pairs=PAIRS,
        steps=30,
        num_beams=2,
        compiled=False,
        max_length_ratio=0.0,
        max_extra_tokens=24,
    )


def symbols_of(translator, ids):
    pieces = translator.target_tokenizer.pieces(ids)
    return sum(piece[-1] in CASE_SYMBOLS for piece in pieces)


def test_an_export_translates_as_the_translator(
    translator, tmp_path, monkeypatch
):
    # As another process does, which is tested elsewhere.
    monkeypatch.setattr(exporting, "verify", lambda folder: None)
    exporting.export(translator, tmp_path / "tiny")
    loaded = tf.saved_model.load(str(tmp_path / "tiny" / "1"))
    found = loaded.signatures["serving_default"](text=tf.constant(SOURCES))
    texts = [text.decode() for text in found["text"].numpy()]
    expected = [row[0] for row in translator.translate_nbest(SOURCES, 1)]
    assert texts == [row.text for row in expected]
    assert sum(symbols_of(translator, row.ids) for row in expected) > 5
    assert not {*"".join(texts)} & {*CASE_SYMBOLS}


def test_given_text_is_kept(translator):
    prefixes = ["The DOG", "THE", "the Lion", "DOGs"] * 3
    sources = SOURCES[:2] * 6
    found = translator.translate(sources, prefixes=prefixes)
    for text, prefix in zip(found, prefixes, strict=True):
        assert text.startswith(prefix)
    constraints = [["the Dog"], ["LION", "Tree"]] * 6
    found = translator.translate_nbest(sources, 1, constraints=constraints)
    for (hypothesis, *_), phrases in zip(found, constraints, strict=True):
        assert hypothesis.constraints_met
        text = hypothesis.text.lower()  # a symbol may stand before a phrase
        assert all(phrase.lower() in text for phrase in phrases)


def test_score_reads_the_case_of_a_text(translator):
    sources, texts = ["Der HUND"] * 2, ["The DOG sees", "the dog sees"]
    first, second = translator.score(sources, texts)
    written = ["".join(score.tokens) for score in (first, second)]
    assert sum(letter in CASE_SYMBOLS for letter in written[0]) == 2
    assert not {*written[1]} & {*CASE_SYMBOLS}
    assert first.total != second.total
