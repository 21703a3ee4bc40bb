"""What must be true of translated segments, whatever the model writes.

* each kept item is in the translation exactly as often as in the segment, none
  is invented, and pairs of tags are nested as in the segment
* segments without markup are translated as by the translator alone, in one
  batch with the others
* sentences are translated by themselves, and joined by the white space that
  was between them, also where a pair of tags is around several
* the tag of the training text at the beginning of a line is no markup
* a target language is its tag, for second readings and alignments, too
* what cannot be done is refused in a sentence
"""

import re
from collections import Counter
from copy import copy
from functools import partial

import pytest
from random_translators import PAIRS, random_translator

from benchmarks.quality.measuring.marked_segments import make_segments, rest_of
from keras_deepnmt import Translator
from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.kept_items import find_kept_items
from keras_deepnmt.data.mask_symbols import mask_symbol
from keras_deepnmt.documents import (
    Segments,
    segments,
    translate_segments,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Hypothesis, join_translators

SEGMENTS = make_segments(PAIRS, seed=7)


@pytest.fixture(scope="module")
def masking(tmp_path_factory):
    symbols = [mask_symbol(number) for number in (1, 2)]
    return random_translator(tmp_path_factory.mktemp("masking"), symbols)


def items(text):
    return Counter(item.text for item in find_kept_items(text))


def nesting(text):
    """Each tag of a pair, with the pairs that it is in."""
    found, stack = [], []
    for item in find_kept_items(text):
        if item.text.startswith("</"):
            opening = stack.pop()
            assert opening.startswith(f"<{item.text[2:-1]}")
        elif item.kind == "tag" and item.text not in ("<br>", "<br/>"):
            found.append((item.text, *stack))
            if not item.text.endswith("/>"):
                stack.append(item.text)
    assert not stack
    return sorted(found)


def check(texts, translations):
    for text, translation in zip(texts, translations, strict=True):
        if not items(text):
            continue  # the translation is the model's
        assert items(translation) == items(text), (text, translation)
        assert nesting(translation) == nesting(text), (text, translation)


@pytest.mark.thorough
def test_500_segments_keep_all_items_without_symbols(plain):
    texts = [segment.source for segment in SEGMENTS]
    assert sum(items(text).total() for text in texts) > 1000
    made = Segments(plain, texts)
    nbest = plain.translate_nbest(made.reads, 1)
    # The model does write items.
    assert sum(items(found[0].text).total() for found in nbest) > 30
    found = made.finish([hypotheses[0] for hypotheses in nbest])
    check(texts, [segment.text for segment in found])
    # The words are those of the model.
    for text, segment, (hypothesis,) in zip(texts, found, nbest, strict=True):
        if items(text):
            assert _words(rest_of(segment.text)) == (
                _words(rest_of(hypothesis.text))
            )


def _words(text):
    return "".join(c for c in text if c.isalpha())


@pytest.mark.thorough
def test_500_segments_keep_all_items_with_symbols(masking):
    texts = [segment.source for segment in SEGMENTS]
    made = Segments(masking, texts)
    assert any("⟪2⟫" in read for read in made.reads)
    nbest = masking.translate_nbest(made.reads, 1)
    found = made.finish([hypotheses[0] for hypotheses in nbest])
    check(texts, [segment.text for segment in found])
    # Both roads: symbols that come, and sentences read without them.
    assert 0 < made.num_without_symbols < len(made.reads)


class Copier:
    """A translator that copies its sentences, but for what is asked of it.

    `lost` are the searches, from 0, in which it leaves out all symbols, and
    `written` is what it adds to each sentence.
    """

    def __init__(self, tokenizer, lost=(), written="", training_tags=()):
        self.source_tokenizer = self.target_tokenizer = tokenizer
        self.model = None
        self.num_beams = 1
        self.on_truncated = None
        self.num_truncated = 0
        self.lost, self.written = lost, written
        self.training_tags, self.tag = training_tags, None
        self.searches = []

    def replaced(self, **changes):
        assert changes.get("num_beams", 8) > 1
        other = copy(self)
        other.tag = changes.get("tag", self.tag)
        return other

    def translate_nbest(
        self, reads, number, on_progress=None, target_language=None, **given
    ):
        self.searches.append((reads, given))
        is_lost = len(self.searches) - 1 in self.lost
        texts = [re.sub("⟪.⟫", "", r) if is_lost else r for r in reads]
        return [
            [Hypothesis(" ".join(text.split()) + self.written, 0.0, 0.0, ())]
            for text in texts
        ]


@pytest.fixture
def copier(masking, monkeypatch):
    def align(translator, sources, targets, layer):
        assert not any(map(translator.training_tags.__contains__, sources))
        if translator.training_tags:
            assert translator.tag in translator.training_tags
        counts = [len(text.split()) for text in targets]
        return [[(n, n) for n in range(count)] for count in counts]

    monkeypatch.setattr(segments, "align_words", align)
    return partial(Copier, masking.source_tokenizer)


def test_symbols_stand_for_items(copier):
    one = copier()
    texts = ["Hallo {a}, <b>{b}</b> {c}!", "nichts", "{a}"]
    assert translate_segments(one, texts) == texts
    # There are two symbols; the third item is put back by alignment.
    [(reads, _)] = one.searches
    assert reads == ["Hallo ⟪1⟫, ⟪2⟫!", "nichts", "⟪1⟫"]


def test_where_a_symbol_is_lost_the_sentence_is_read_without_symbols(copier):
    one = copier(lost=[0])
    texts = ["Hallo {a} <b>da</b>", "nichts"]
    made = Segments(one, texts, constraints=[["Hallo"], []])
    nbest = one.translate_nbest(made.reads, 1, **made.given)
    found = made.finish([hypotheses[0] for hypotheses in nbest])
    assert [segment.text for segment in found] == texts
    # That sentence alone is searched again, with what was given for it.
    assert one.searches[1:] == [(["Hallo da"], {"constraints": [["Hallo"]]})]
    assert made.num_without_symbols == 1


def test_what_the_model_invents_is_left_out(copier):
    one = copier(written=" ⟪2⟫ <i>%s</i> www.y.de ⟪7⟫")
    texts = ["ein <b>Hund</b>", "ein {x}"]
    assert translate_segments(one, texts) == texts
    # Of a text without items, only symbols are.
    (found,) = translate_segments(one, ["ein Hund"])
    assert found == "ein Hund <i>%s</i> www.y.de ⟪7⟫"


def test_items_that_cannot_stand_in_the_text_stand_at_its_end(copier):
    # A digit beside a number would be a part of it.
    (found,) = translate_segments(copier(written=" 12"), ["Konto 4711471"])
    assert items(found) == {"4711471": 1}
    assert found == "Konto 12, 4711471"


@pytest.mark.thorough
def test_segments_without_markup_are_translated_as_before(copier, plain):
    texts = ["ein Hund", "", "a <b>b</b>", "  x  y "]
    one = copier()
    assert translate_segments(one, texts) == [*texts[:3], "x y"]
    [(reads, _)] = one.searches
    # In one batch, and as they are.
    assert [reads[n] for n in (0, 1, 3)] == [texts[n] for n in (0, 1, 3)]
    assert translate_segments(one, texts[2]) == texts[2]
    text = PAIRS[0].source
    assert translate_segments(plain, text) == plain.translate(text)


@pytest.mark.thorough
def test_a_target_language_is_its_tag(tmp_path, monkeypatch):
    tags = ["<2de>", "<2fr>"]
    one = random_translator(tmp_path, [mask_symbol(1), *tags])
    one.directions = Directions(
        {"source": "en", "target": tag[2:4], "tag": tag} for tag in tags
    )
    texts = ["a <b>little</b> dog {name} runs", "two 4711471 men", "a dog"]
    read, aligned = [], []
    search, align = Translator.translate_nbest, segments.align_words
    monkeypatch.setattr(
        Translator,
        "translate_nbest",
        lambda *given, **more: read.append(given[1]) or search(*given, **more),
    )
    monkeypatch.setattr(
        segments,
        "align_words",
        lambda by, *given: aligned.append(by.tag) or align(by, *given),
    )
    tagged = one.replaced(tag="<2de>")
    for some in (texts, texts[0]):
        found = translate_segments(one, some, target_language="de")
        assert found == translate_segments(tagged, some)
        assert found != translate_segments(one, some)
    # Each has sentences to align, and to read again without symbols.
    assert aligned == ["<2de>", "<2de>", None] * 2
    assert len(read) == 12 and read[:2] == read[2:4]
    with pytest.raises(UserError, match="to write: de, fr. Received: xx"):
        translate_segments(one, "a dog", target_language="xx")


class Splitter:
    """Splits at each full stop."""

    def spans(self, text):
        return [match.span() for match in re.finditer(r"\S[^.]*\.?", text)]


def test_sentences_are_joined_by_their_white_space(copier):
    texts = [" Eins a.\t Zwei b.Drei c. ", "Vier d.", " "]
    one = copier(written="!")
    options = {"keep_markup": False, "splitter": Splitter()}
    found = translate_segments(one, texts, **options)
    assert found == ["Eins a.!\t Zwei b.!Drei c.!", "Vier d.!", "!"]
    [(reads, _)] = one.searches
    assert reads == ["Eins a.", "Zwei b.", "Drei c.", "Vier d.", " "]
    made = Segments(one, texts, **options)
    assert made.segment_numbers == [0, 0, 0, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "<p>Eins {a}. <b>Zwei.</b>\t<i>Drei www.x.de/a.b.</i></p> <u>Vi</u>er.",
        "Eins a. <br/>  Zwei b.",
        "Eins a.<br/> Zwei b.",
        "<b>Eins a.  Zwei</b> b.",
        "Eins <b>a.\tZwei</b> b. Drei.",
        "<p>Eins a.</p>\u3000<p>Zwei b.</p>",
    ],
)
def test_markup_is_kept_across_sentences(copier, text):
    one = copier()
    (found,) = translate_segments(one, [text], splitter=Splitter())
    assert found == text.replace("<u>Vi</u>er", "<u>Vier</u>")
    [(reads, _)] = one.searches
    assert len(reads) > 1
    assert not any("<" in read for read in reads)


def test_the_tag_of_a_line_is_no_markup_and_belongs_to_each_sentence(copier):
    one = copier(training_tags=("<EN>", "<2DE>"))
    texts = [
        "<EN> Eins <b>a.</b> Zwei {b}.",
        "<2DE> Drei <EN>c</EN>. Vier.",
        "<EN>",
        " <EN>  ",
    ]
    made = Segments(one, texts, splitter=Splitter())
    assert made.reads == [
        *("<EN> Eins a.", "<EN> Zwei ⟪1⟫."),
        *("<2DE> Drei c.", "<2DE> Vier."),
        *("", ""),
    ]
    # What the translator wrote has no tag.
    found = made.finish(
        [
            Hypothesis(read.partition("> ")[2], 0.0, 0.0, ())
            for read in made.reads
        ]
    )
    assert [segment.text for segment in found] == [
        "Eins <b>a.</b> Zwei {b}.",
        "Drei <EN>c</EN>. Vier.",
        *("", ""),
    ]
    # Other translators know of no tags.
    assert Segments(copier(), texts[:1]).reads == [" Eins a. Zwei ⟪1⟫."]


@pytest.mark.parametrize("name", ["prefixes", "constraints"])
def test_given_text_with_items_is_refused(copier, name):
    value = "a {x}" if name == "prefixes" else ["b", "a {x}"]
    with pytest.raises(UserError, match=rf"`{name}` must have no markup"):
        translate_segments(copier(), ["a", "b"], **{name: [value, value]})
    # The number of a line is that in its file.
    with pytest.raises(UserError, match="for text 2049"):
        Segments(copier(), ["a"], first=2049, **{name: [value]})


def test_given_text_without_items_is_passed_on(copier):
    one = copier()
    translate_segments(one, "a {x}", prefixes="Der", constraints=["Hund"])
    [(_, given)] = one.searches
    assert given == {"prefixes": ["Der"], "constraints": [["Hund"]]}


def test_nothing_is_given_for_texts_that_are_split(copier):
    given = {"splitter": Splitter(), "prefixes": ["b"]}
    with pytest.raises(UserError, match="`prefixes` cannot be given"):
        translate_segments(copier(), ["a"], **given)


@pytest.mark.thorough
def test_equal_models_place_tags_as_one(plain):
    texts = ["a <b>a</b> {name}"]
    together = join_translators([plain, plain])
    expected = translate_segments(plain, texts)
    assert translate_segments(together, texts) == expected


@pytest.mark.thorough
def test_a_cut_sentence_keeps_its_items_and_is_reported_once(masking):
    reported = []
    short = masking.replaced(max_source_length=6, on_truncated=reported.append)
    text = f"{PAIRS[0].source} {{x}} <b>{PAIRS[1].source}</b>"
    found = translate_segments(short, [text, "a"])
    check([text, "a"], found)
    assert reported == [[0]]
    assert short.num_truncated == 1
