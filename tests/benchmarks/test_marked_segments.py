"""Segments with markup are made from sentences, and rows are about them."""

from types import SimpleNamespace

from benchmarks.quality.kept_markup import measure
from benchmarks.quality.measuring.marked_segments import (
    make_segments,
    rest_of,
)
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.data.kept_items import TAG_KINDS, find_kept_items
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.documents import segments as segments_module
from keras_deepnmt.translator import Hypothesis

PAIRS = demo_pairs(120)


def test_segments_are_sentences_with_markup():
    made = make_segments(PAIRS, seed=3)
    assert made == make_segments(PAIRS, seed=3)
    assert made != make_segments(PAIRS, seed=4)
    kinds = {i.kind for one in made for i in find_kept_items(one.source)}
    assert TAG_KINDS & kinds and len(kinds) > 6
    for segment, pair in zip(made, PAIRS, strict=True):
        assert segment.plain == pair.source
        assert rest_of(segment.source) == rest_of(pair.source, segment.names)
        assert segment.reference == rest_of(pair.target, segment.names)
    assert any(segment.names for segment in made)


def test_a_row_counts_the_items_that_are_kept(tmp_path, monkeypatch):
    """A model that knows the translations has all items and a perfect score."""
    made = make_segments(PAIRS, seed=3)
    tokenizer = train_tokenizer(
        [pair.source for pair in PAIRS], tmp_path / "m", 80
    )
    english = {rest_of(s.source): s.reference for s in made}
    english |= {p.source: p.target for p in PAIRS}

    def translate(texts):
        return [english.get(rest_of(text), "") for text in texts]

    translator = SimpleNamespace(
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        model=None,
        training_tags=(),
        translate=lambda texts: [
            english.get(text, english.get(rest_of(text), "")) for text in texts
        ],
        translate_nbest=lambda texts, number: [
            [Hypothesis(text, 0.0, 0.0, ())] for text in translate(texts)
        ],
    )
    monkeypatch.setattr(
        segments_module, "align_words", lambda t, s, texts, layer: [()] * len(s)
    )
    first, unknown = measure(translator, made)
    items = sum(len(find_kept_items(segment.source)) for segment in made)
    assert first["items"] == first["kept"] == items > 100
    assert first["invented"] == 0
    assert first["reading"] == "nothing" and first["mask_symbols"] == 0
    assert first["bleu"] == first["plain_bleu"] == first["removed_bleu"] == 100
    assert unknown["reading"] == "unknown token"
    assert set(first) == set(unknown)
