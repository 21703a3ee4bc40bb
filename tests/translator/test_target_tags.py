"""What must be true of tags on the target side.

* a search begins with the tag; its scores are those of the tagged target, and
  no text has it
* a tag in the text, or of a language, is the same; a batch may have several
* words are those of the lines without the tag
"""

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt import Translator
from keras_deepnmt.analysis import align_words, word_alignments
from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.data.tags import split_tags, without_beginning
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import join_translators
from keras_deepnmt.translator.missed_phrases import why_missed

TEXTS = ["a small dog runs", "", "two men read the old book", " ", "dog"]
CORPUS = [text for text in TEXTS if text.strip()] * 9
TAGS = ["<2de>", "<2fr>"]


def test_tags_are_taken_off_texts():
    texts = ["<2de> a dog", " <2fr>  a", "<2de>r", "a", "<2de>"]
    assert split_tags(texts, TAGS) == (
        ["a dog", "a", "<2de>r", "a", ""],
        ["<2de>", "<2fr>", None, None, "<2de>"],
    )
    found = [
        without_beginning(text, "<2de>")
        for text in ("<2de> a dog", "<2de>n", " <2de>  a", "<2de>", "a")
    ]
    assert found == ["a dog", "n", " a", "", "a"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    plain, tagged = (
        train_tokenizer(
            CORPUS, folder / f"{len(tags)}.model", 34, user_defined_symbols=tags
        )
        for tags in ([], TAGS)
    )
    model = ToyModel(34, 34, max_length=40, seed=1)
    translator = Translator(
        *(model, plain, tagged),
        compiled=False,
        num_beams=3,
        max_extra_tokens=4,
        tag_side="target",
        training_tags=TAGS,
    )
    translator.directions = Directions(
        {"source": "en", "target": tag[2:4], "tag": tag} for tag in TAGS
    )
    return translator


@pytest.fixture(scope="module")
def own(translator):
    return translator.replaced(tag="<2de>")


def test_the_search_begins_with_the_tag_and_no_text_has_it(own):
    tokenizer = own.target_tokenizer
    tag = tuple(tokenizer.encode(["<2de>"])[0])
    for text, hypotheses in zip(
        TEXTS, own.translate_nbest(TEXTS, 2), strict=True
    ):
        if not text.strip():
            (empty,) = hypotheses
            assert (empty.text, empty.ids, empty.score) == ("", (3,), 0.0)
            assert empty.constraints_met
            continue
        assert len(hypotheses) == 2
        for one in hypotheses:
            assert one.ids[: len(tag)] == tag and one.ids.count(tag[-1]) == 1
            assert "<2de>" not in one.text
            (whole,) = tokenizer.decode([one.ids])
            # Its first letter may belong to the tag's word.
            assert whole.removeprefix("<2de>").strip() == one.text.strip()
            # The score is that of the tag and the rest.
            score = own.score(text, one.ids)
            assert score.total == pytest.approx(one.log_prob, abs=1e-4)
            (ids,) = tokenizer.encode([f"<2de> {one.text}"])
            if ids.tolist() == [*one.ids[:-1]]:
                assert own.score(text, one.text).total == score.total
    score = own.score("dog", "a dog")
    assert score.tokens[:2] == ("▁", "<2de>")
    # Sources are read without it.
    assert own.tagged(TEXTS) == TEXTS
    # A search of ids begins with it, too.
    ids = [*own.source_tokenizer.encode(["dog"])[0], 3]
    found = own.search(np.array([ids, [0] * len(ids)], "int32"))
    assert tuple(found["ids"][0, 0][: len(tag)]) == tag
    (best,) = own.translate_nbest("dog", 1)
    assert found["log_probs"][0, 0] == pytest.approx(best.log_prob, abs=1e-4)


def test_a_tag_in_the_text_or_of_a_language_is_the_same(translator, own):
    expected = [
        own.translate_nbest(TEXTS[:1], 2)[0],
        translator.replaced(tag="<2fr>").translate_nbest(TEXTS[2], 2),
    ]
    assert expected[0] != own.translate_nbest(TEXTS[2], 2)
    # Two languages in one batch.
    mixed = [f"<2de> {TEXTS[0]}", f" <2fr> {TEXTS[2]}", "<2de>", ""]
    found = translator.translate_nbest(mixed, 2)
    for some, others in zip(found[:2], expected, strict=True):
        assert [h.ids for h in some] == [h.ids for h in others]
        assert [h.text for h in some] == [h.text for h in others]
        np.testing.assert_allclose(
            [h.score for h in some], [h.score for h in others], atol=1e-4
        )
    assert [[h.text for h in some] for some in found[2:]] == [[""], [""]]
    by_language = translator.translate_nbest(TEXTS[2], 2, target_language="fr")
    assert by_language == expected[1]
    scores = translator.score(mixed[:2], ["dog", "dog"])
    assert scores[1].tokens[:2] == ("▁", "<2fr>")
    # A text without a tag is translated without one.
    assert translator.target_tags(TEXTS) == [None] * 5


def test_given_beginnings_and_phrases_follow_the_tag(own):
    (best,) = own.translate_nbest(
        ["dog"], 1, prefixes=["two"], constraints=[["book"]], max_lengths=[20]
    )[0]
    assert best.text.startswith("two") and best.constraints_met
    pieces = own.target_tokenizer.pieces(best.ids)
    assert pieces[:2] == ["▁", "<2de>"]
    given = {"prefixes": "two", "constraints": ["book"]}
    assert why_missed(own, "dog", best, **given) is None
    assert own.translate("", prefixes="two") == ""


def test_words_are_those_of_the_lines(translator, own, monkeypatch):
    # Each target token is aligned with the source token of its number.
    def diagonal(weights, is_source, is_target):
        return [
            [(n, n) for n in range(min(source.sum(), target.sum()))]
            for source, target in zip(is_source, is_target, strict=True)
        ]

    monkeypatch.setattr(word_alignments, "align_by_attention", diagonal)
    monkeypatch.setattr(
        word_alignments,
        "MeanAttention",
        lambda model, layer: lambda inputs: np.zeros((1, 1, 1)),
    )
    pair = ["two dog"], ["dog two"]
    (plain,) = align_words(translator, *pair)
    (tagged,) = align_words(own, *pair)
    (in_text,) = align_words(translator, ["<2de> two dog"], pair[1])
    assert plain[0] == (0, 0)
    # The two tokens of the tag move the rest of the target.
    assert all(target < 2 for _, target in tagged)
    assert in_text == [(source + 1, target) for source, target in tagged]


def test_what_does_not_fit_is_refused(translator, own):
    with pytest.raises(UserError, match="symbol of the target tokenizer"):
        translator.replaced(tag="<2xx>")
    with pytest.raises(ValueError, match='must be "source" or "target"'):
        translator.replaced(tag_side="both")
    assert own.replaced(num_beams=1).tag_side == "target"
    other = translator.replaced(tag_side="source")
    with pytest.raises(UserError, match="tags on the same side"):
        join_translators([translator, other])
