"""What must be true of translators with a tag.

* it is the same as the tag in the text, for every use of the translator
* an empty sentence stays empty, also with a tag in its line, and truncation
  never cuts the tag
* words are those of the line without the tag; none is aligned with a tag in the
  line
* sources that lack a tag, or have two, are warned of once
"""

import logging
from dataclasses import replace

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt import Translator
from keras_deepnmt.analysis import (
    align_words,
    inspection,
    replace_unknown,
    word_alignments,
)
from keras_deepnmt.analysis.inspection import Inspector
from keras_deepnmt.commands.options.compilation import LazilyCompiled
from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.reranking import Reranker
from keras_deepnmt.translator import Hypothesis, join_translators
from keras_deepnmt.translator.missed_phrases import why_missed
from keras_deepnmt.translator.requests import source_rows
from keras_deepnmt.translator.tag_notice import TagNotice

TEXTS = ["a small dog runs", "", "two men read the old book", " ", "dog"]
CORPUS = [text for text in TEXTS if text.strip()] * 9
TAGS = ["<2de>", "<2fr>"]


def with_tag(texts, tag="<2de>"):
    return [f"{tag} {text}" if text.strip() else text for text in texts]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """With the tags, and without."""
    folder = tmp_path_factory.mktemp("tokenizers")
    return [
        train_tokenizer(
            CORPUS, folder / f"{len(tags)}.model", 34, user_defined_symbols=tags
        )
        for tags in (TAGS, [])
    ]


def make_translator(tokenizer, seed=1, **options):
    size = tokenizer.vocabulary_size
    model = ToyModel(size, size, max_length=40, seed=seed)
    options = {"num_beams": 2, "max_extra_tokens": 3, **options}
    return Translator(model, tokenizer, tokenizer, compiled=False, **options)


@pytest.fixture(scope="module")
def translator(tokenizers):
    return make_translator(tokenizers[0])


@pytest.mark.thorough
def test_it_is_the_same_as_the_tag_in_the_text(translator):
    own = translator.replaced(tag="<2de>")
    assert own.tag == "<2de>" and translator.tag is None
    found = own.translate_nbest(TEXTS, 2)
    assert found == translator.translate_nbest(with_tag(TEXTS), 2)
    other = translator.replaced(tag="<2fr>").translate_nbest(TEXTS, 2)
    assert found[0] != other[0]
    assert own.translate(TEXTS[0]) == found[0][0].text
    assert list(own.translate_stream(TEXTS)) == own.translate(TEXTS)
    targets = ["dog", "dog", "a book", "two", ""]
    assert own.score(TEXTS, targets) == translator.score(
        with_tag(TEXTS), targets
    )


def test_an_empty_sentence_stays_empty(translator):
    own = translator.replaced(tag="<2de>")
    assert own.tagged(["", " \u00ad", "a"]) == ["", " \u00ad", "<2de> a"]
    (found,) = own.translate_nbest(["  "], 2)
    assert [h.text for h in found] == [""]


def test_a_tag_in_the_line_before_nothing_is_an_empty_sentence(translator):
    own = translator.replaced(training_tags=TAGS)
    texts = ["<2de> \u200b", "<2de>", " <2fr> \u00ad\ufeff "]
    assert own.translate(texts) == [""] * 3
    (found,) = own.translate_nbest(texts[0], 2, constraints=["dog"])
    assert (found.text, found.ids, found.score) == ("", (3,), 0.0)
    assert why_missed(own, texts[0], found, constraints=["dog"]) == "empty"
    # To a model without tags it is a symbol.
    (row,), _ = source_rows(translator.source_tokenizer, texts[1:2], 40)
    assert len(row) == 3


def test_truncation_counts_the_tag_and_never_cuts_it(translator, tokenizers):
    own = translator.replaced(tag="<2de>", max_source_length=6)
    text = "two men read the old book"
    ids = tokenizers[0].encode([f"<2de> {text}"])[0]
    assert tokenizers[0].pieces(ids[:2]) == ["▁", "<2de>"]
    (hypothesis,) = own.translate_nbest(text, 1)
    assert hypothesis.source_truncated
    batch = np.array([[*ids[:5], 3]], "int32")
    best = own.search(batch)["ids"][0, 0]
    assert hypothesis.ids == tuple(best[: len(hypothesis.ids)])
    with pytest.raises(ValueError, match="`max_source_length` must be at lea"):
        translator.replaced(tag="<2de>", max_source_length=3)


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("<2xx>", "symbols are: <2de>, <2fr>"),
        ("dog", "symbols are: <2de>, <2fr>"),
        ("a b", "without white space"),
        ("", "without white space"),
    ],
)
def test_a_tag_that_is_no_symbol_is_refused(translator, tag, said):
    with pytest.raises(UserError, match="`tag` must be") as error:
        translator.replaced(tag=tag)
    assert said in str(error.value)


@pytest.mark.thorough
def test_copies_and_ensembles_keep_the_tag(translator, tokenizers):
    own = translator.replaced(tag="<2de>")
    assert own.replaced(num_beams=1).tag == "<2de>"
    assert LazilyCompiled(own, False).choose(TEXTS).tag == "<2de>"
    other = make_translator(tokenizers[0], seed=2)
    texts = with_tag(TEXTS)
    expected = join_translators([translator, other]).translate(texts)
    assert join_translators([own, other]).translate(TEXTS) == expected


@pytest.mark.thorough
def test_each_model_of_a_reranking_has_its_own_tag(translator, tokenizers):
    own = translator.replaced(tag="<2de>")
    nbest = own.translate_nbest(TEXTS, 2)
    bilingual = make_translator(tokenizers[1], seed=2)
    multilingual = make_translator(tokenizers[0], seed=3)
    unscored = []
    features = Reranker(
        own,
        [bilingual, multilingual.replaced(tag="<2fr>")],
        [bilingual],
        on_unscored=lambda *found: unscored.append(found),
    ).features(TEXTS, nbest)
    parts = [
        Reranker(translator, *models).features(texts, nbest)
        for models, texts in (
            (([bilingual], [bilingual]), TEXTS),
            (([multilingual],), with_tag(TEXTS, "<2fr>")),
        )
    ]
    assert not unscored
    for rows, one, two in zip(features, *parts, strict=True):
        expected = np.stack([one[:, 0], one[:, 1], two[:, 1], one[:, 2]], 1)
        np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.thorough
def test_a_tag_in_the_line_is_for_models_that_know_it(translator, tokenizers):
    own = translator.replaced(training_tags=TAGS)
    tagged = own.replaced(tag="<2de>")
    texts, hypothesis = ["a dog", ""], Hypothesis("dog", -1.0, -2.0, (3,))
    nbest = [[hypothesis], [replace(hypothesis, text="")]]
    bilingual = make_translator(tokenizers[1], seed=2)
    expected = Reranker(tagged, [bilingual, tagged], [bilingual])
    found = Reranker(own, [bilingual, own], [bilingual])
    for rows, others in zip(
        found.features(["<2de> a dog", "<2de>"], nbest),
        expected.features(texts, nbest),
        strict=True,
    ):
        np.testing.assert_allclose(rows, others, rtol=1e-5)
    # A tag of the model's own takes the place of that of the line.
    french = own.replaced(tag="<2fr>")
    (found,), (others,) = (
        Reranker(translator, [french]).features([text], nbest[:1])
        for translator, text in ((own, "<2de> a dog"), (tagged, "a dog"))
    )
    np.testing.assert_allclose(found, others, rtol=1e-5)


def test_a_model_that_the_tag_makes_too_long_does_not_score(translator):
    text = "two men read the old book"
    nbest = translator.translate_nbest([text], 1)
    nbest = [[replace(nbest[0][0], text="dog")]]
    number = len(translator.source_tokenizer.encode([text])[0])
    unscored = []
    for extra in (1, 3):  # the end; with the tag
        other = translator.replaced(
            tag="<2de>", max_source_length=number + extra
        )
        Reranker(
            translator, [other], on_unscored=lambda *x: unscored.append(x)
        ).features([text], nbest)
    assert unscored == [(1, [0])]


@pytest.fixture
def attentive(tokenizers, monkeypatch):
    """A translator of "<2de>" whose attention is made up.

    Target token t attends most to the tag, and then to the token t places after
    it.
    """

    def fake(model, name):
        def recorded(inputs):
            shape = inputs["target_ids"].shape, inputs["source_ids"].shape
            weights = np.full((shape[0][0], 1, shape[0][1], shape[1][1]), 0.1)
            weights[..., :2] = 0.9  # the tag, and the space before it
            for t in range(min(shape[0][1], shape[1][1] - 2)):
                weights[:, :, t, t + 2] = 0.5
            return {name: weights}

        return recorded

    monkeypatch.setattr(word_alignments, "record", fake)
    monkeypatch.setattr(
        word_alignments, "_attention_name", lambda model, layer: "weights"
    )
    return make_translator(tokenizers[0], tag="<2de>")


def test_words_are_those_of_the_line_without_the_tag(attentive):
    line = "a small  dog"
    found = align_words(attentive, [line, ""], [line, "a"])
    assert found == [[(0, 0), (1, 1), (2, 2)], []]


def test_unknown_tokens_are_replaced_by_words_of_the_line(attentive):
    line = "a Ł"
    (ids,) = attentive.source_tokenizer.encode([line])
    assert attentive.source_tokenizer.pieces(ids)[-2:] == ["▁", "<unk>"]
    hypothesis = Hypothesis("a ⁇", -1.0, -2.0, (*ids.tolist(), 3))
    for table, expected in ((None, "a Ł"), ({"Ł": "dog"}, "a dog")):
        (found,) = replace_unknown(attentive, [line], [hypothesis], table)
        assert found.text == expected


@pytest.fixture
def with_tag_in_line(attentive):
    """The same model, whose tag is in the line."""
    return attentive.replaced(tag=None, training_tags=TAGS)


def test_no_word_is_aligned_with_a_tag_in_the_line(with_tag_in_line):
    lines = ["<2de> a small  dog", "<2de>", "a dog"]
    found = align_words(with_tag_in_line, lines, ["a small  dog", "a", "a"])
    # Words are those of the line, and a line without a tag has all of them.
    assert found == [[(1, 0), (2, 1), (3, 2)], [], [(0, 0)]]


def test_no_unknown_token_is_replaced_by_a_tag_in_the_line(with_tag_in_line):
    (ids,) = with_tag_in_line.source_tokenizer.encode(["a Ł"])
    hypothesis = Hypothesis("a ⁇", -1.0, -2.0, (*ids.tolist(), 3))
    (found,) = replace_unknown(with_tag_in_line, ["<2de> a Ł"], [hypothesis])
    assert found.text == "a Ł"


def test_the_page_links_no_word_with_a_tag_in_the_line(
    with_tag_in_line, monkeypatch
):
    monkeypatch.setattr(inspection, "recorded_names", lambda model: [])
    monkeypatch.setattr(inspection, "_panels", lambda pair: [])
    look = Inspector()
    lines = ["<2de> a small  dog", "<2de>"]
    found = look(with_tag_in_line, [(line, "a small  dog") for line in lines])
    assert [one["links"] for one in found] == [[(1, 0), (2, 1), (3, 2)], []]


def test_a_target_language_is_its_tag(translator):
    """In place of the translator's own; of a model of one language, no tag."""
    both = translator.replaced(tag="<2fr>")
    both.directions = Directions(
        {"source": "en", "target": tag[2:-1], "tag": tag} for tag in TAGS
    )
    targets = ["dog"] * len(TEXTS)
    expected = translator.score(with_tag(TEXTS), targets)
    assert both.score(TEXTS, targets, target_language="de") == expected
    french = both.translate(TEXTS)
    assert both.translate(TEXTS, target_language="fr") == french
    streamed = both.translate_stream(iter(TEXTS), target_language="fr")
    assert list(streamed) == french
    with pytest.raises(UserError, match="to write: de, fr. Received: xx"):
        both.translate("dog", target_language="xx")
    with pytest.raises(UserError, match="both choose the tag.*<2de> and fr"):
        Translator.load("runs/both", tag="<2de>", target_language="fr")
    one = translator.replaced()
    one.directions = Directions([{"source": "en", "target": "de", "tag": None}])
    scores = one.score(TEXTS, targets)
    assert one.score(TEXTS, targets, target_language="de") == scores


@pytest.mark.thorough
def test_sources_without_a_tag_are_warned_of_once(translator, caplog):
    caplog.set_level(logging.WARNING)
    translator._tag_notice = TagNotice()
    translator.translate(["dog"])
    assert not caplog.records
    translator._tag_notice = TagNotice([*TAGS, None])
    translator.translate(["dog"])
    assert not caplog.records
    translator._tag_notice = TagNotice(TAGS)
    own = translator.replaced(tag="<2de>")
    own.translate(["dog"])
    translator.translate(["", "<2fr> dog"])
    assert not caplog.records
    copy = translator.replaced(compiled=False)
    copy.translate(["<2de> dog", "old dog"])
    translator.translate(["dog"])
    (record,) = caplog.records
    assert "'old dog': it begins with none of the tags" in record.getMessage()
    assert "<2de>, <2fr>" in record.getMessage()


def test_sources_with_two_tags_are_warned_of(translator, caplog):
    caplog.set_level(logging.WARNING)
    translator._tag_notice = TagNotice([*TAGS, None])
    translator.replaced(tag="<2de>").translate(["<2fr> dog"])
    assert "begins with a tag already, and gets <2de>" in caplog.text
    translator._tag_notice = TagNotice()
