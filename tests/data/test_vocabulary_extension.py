"""What must be true of a tokenizer that gets new pieces.

* its own pieces keep their ids and scores, its rule and steps stay, and a text
  without new pieces is cut as before
* first come characters without a piece, the most frequent first
* then the most frequent pairs of pieces within a word, as SentencePiece itself
  cuts the text after each of them
* new pieces come out of `encode`, in Python and in a graph
* no piece joins digits that are split, symbols, words or scripts
* the order of the text does not matter
"""

import random
from collections import Counter

import pytest
from foreign_tokenizer import foreign_tokenizer
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data import Tokenizer, train_tokenizer
from keras_deepnmt.data.model_files import with_vocabulary
from keras_deepnmt.data.preparation import vocabulary_extension
from keras_deepnmt.data.preparation.pair_merging import NewPiece, PairMerger
from keras_deepnmt.data.preparation.piece_rules import PieceRules
from keras_deepnmt.data.preparation.vocabulary_extension import (
    check_extensible,
    cut_new_pieces,
    extend_tokenizers,
    extended_model,
)
from keras_deepnmt.errors import UserError

OLD = [
    f"{who} {does} the {what} in {2000 + number}."
    for number, who in enumerate(("The child", "A dog", "The teacher") * 20)
    for does, what in (("opens", "zoo"), ("sees", "fruit"), ("reads", "book"))
]
NEW = [
    f"Patient {number} receives {number % 7} µg of Łukazin, then Łukazinol."
    for number in range(100, 180)
] + ["ŵ", "A dog sees Łódź."]


@pytest.fixture(params=["bpe", "unigram"])
def kind(request):
    return request.param


@pytest.fixture
def train(kind, tmp_path):
    def make(more=0, **options):
        size = {"bpe": 90, "unigram": 42}[kind] + more
        return train_tokenizer(
            OLD, tmp_path / "old.model", size, kind, **options
        )

    return make


def extend(tokenizer, number, texts=NEW, coverage=1.0):
    """The larger tokenizer and what is said about it."""
    blocks = [[texts[:50]], [texts[50:]]]
    (model,), (added,) = extend_tokenizers(
        [tokenizer], number, blocks, coverage
    )
    file = tokenizer.model_file.with_name("new.model")
    file.write_bytes(model)
    return Tokenizer(file), added


def new_pieces(old, new):
    return new.pieces(range(old.vocabulary_size, new.vocabulary_size))


def equal(rows, others):
    return [row.tolist() for row in rows] == [row.tolist() for row in others]


def test_old_pieces_and_the_reading_of_old_text_stay(train):
    old = train(normalization="nfc")
    new, added = extend(old, 8)
    assert new.vocabulary_size == old.vocabulary_size + 8
    before, after = (
        model_pb2.ModelProto.FromString(one.proto) for one in (old, new)
    )
    for left, right in zip(before.pieces, after.pieces, strict=False):
        assert left == right
    assert after.normalizer_spec == before.normalizer_spec
    assert [type(s) for s in new.steps] == [type(s) for s in old.steps]
    assert after.trainer_spec.vocab_size == new.vocabulary_size
    assert (added.tokenizer, added.characters + added.merges) == (
        old.sha256,
        8,
    )
    pieces = new_pieces(old, new)
    texts = [*OLD, *(word for text in OLD for word in text.split())]
    same = [
        text
        for text in texts
        if not any(p in f"▁{text.replace(' ', '▁')}" for p in pieces)
    ]
    assert len(same) > 20
    assert equal(new.encode(same), old.encode(same))


def test_an_imported_vocabulary_has_the_new_pieces(train):
    """Its file says how many of its pieces are the vocabulary."""
    old = train()
    old.model_file.write_bytes(
        with_vocabulary(old.proto, old.pieces(range(old.vocabulary_size)))
    )
    old = Tokenizer(old.model_file)
    check_extensible(old)
    new, added = extend(old, 60)
    number = added.characters + added.merges
    assert number > 40
    assert new.vocabulary_size == old.vocabulary_size + number
    ids = [id_ for row in new.encode(NEW) for id_ in row.tolist()]
    assert max(ids) >= old.vocabulary_size and 1 not in ids


def test_characters_without_a_piece_come_first_by_frequency(train):
    old = train()
    new, added = extend(old, 3)
    # "P" and "μ", which the rule makes of "µ", are as frequent as ",".
    assert new_pieces(old, new) == ["Ł", ",", "P"]
    assert (added.characters, added.merges) == (3, 0)
    known = set("".join(OLD))
    rest = {c for text in NEW for c in old.normalization.normalize(text)}
    assert added.missing_characters == len(rest - known - set("Ł,P"))
    everything, added = extend(old, 100)
    assert added.missing_characters == 0
    assert not any((row == 1).any() for row in everything.encode(NEW))
    assert everything.decode(everything.encode(NEW)) == [
        old.normalization.normalize(text) for text in NEW
    ]


def test_character_coverage_leaves_rare_ones_out(train):
    new, added = extend(train(), 40, coverage=0.999)
    unknown = [
        t for t, row in zip(NEW, new.encode(NEW), strict=True) if 1 in row
    ]
    assert unknown == NEW[-2:] and added.missing_characters > 0


def test_each_merge_is_the_most_frequent_pair_of_the_text_as_it_then_is(
    tmp_path,
):
    """Compared with SentencePiece itself, which cuts the text after each."""
    draw = random.Random(4)
    texts = [
        " ".join(
            "".join(draw.choices("abcd", (8, 4, 2, 1), k=draw.randint(1, 9)))
            for _ in range(6)
        )
        for _ in range(60)
    ]
    old = train_tokenizer(texts[:20], tmp_path / "old.model", 30)
    new, added = extend(old, 40, texts)
    expected, current = [], old
    rules = PieceRules(model_pb2.ModelProto.FromString(old.proto))
    for _ in range(40):
        pairs = Counter()
        for row in current.encode_as_pieces(texts):
            for left, right in zip(row, row[1:], strict=False):
                if not right.startswith("▁"):
                    pairs[left + right] += 1
        text = min(
            (text for text in pairs if rules.allow(text)),
            key=lambda text: (-pairs[text], len(text), text),
        )
        expected.append(NewPiece(text, ("?", "?")))
        current = Tokenizer(tmp_path / "old.model")
        (tmp_path / "step.model").write_bytes(
            extended_model(old.proto, expected)
        )
        current = Tokenizer(tmp_path / "step.model")
    assert new_pieces(old, new) == [piece.text for piece in expected]
    assert equal(new.encode(texts), current.encode(texts))
    assert added.merges == 40


def test_new_pieces_come_out_of_encode_in_python_and_in_a_graph(train):
    old = train()
    new, added = extend(old, 60)
    produced = {piece for row in new.encode_as_pieces(NEW) for piece in row}
    assert "▁Łukazin" in produced and "▁receives" in produced
    pieces = new_pieces(old, new)
    # A piece that is not in the text is a part of one that is.
    for piece in set(pieces) - produced:
        assert any(piece in other for other in produced & set(pieces))
    tokens = [sum(map(len, one.encode(NEW))) / len(NEW) for one in (old, new)]
    assert added.tokens_before == round(tokens[0], 2)
    assert added.tokens_after == round(tokens[1], 2)
    assert tokens[1] < 0.5 * tokens[0]
    texts = NEW + OLD
    rows = new.in_graph_tokenizer().tokenize(texts)
    assert rows.to_list() == [row.tolist() for row in new.encode(texts)]


def test_split_digits_and_symbols_stay_alone(train):
    old = train(split_digits=True, user_defined_symbols=["azin", "⟦1⟧"])
    new, _ = extend(old, 200, [*NEW, "x⟦1⟧ y⟦1⟧ x⟦1⟧"])
    pieces = new_pieces(old, new)
    joined = [piece for piece in pieces if len(piece) > 1]
    assert joined
    for piece in joined:
        assert not set(piece) & set("0123456789")
        assert "azin" not in piece and "⟦" not in piece


def test_scripts_and_words_are_not_joined(train):
    old = train()
    texts = ["der犬der, der犬der, der犬der,"] * 3
    new, _ = extend(old, 50, texts)
    pieces = new_pieces(old, new)
    assert "▁der" in pieces and "," in pieces
    for piece in pieces:
        assert "▁" not in piece[1:]
        assert piece == "犬" or "犬" not in piece
        assert piece == "," or "," not in piece


def test_bytes_stand_for_rare_characters(train):
    old = train(256, byte_fallback=True)
    new, added = extend(old, 20)
    pieces = new_pieces(old, new)
    # They need no piece; a frequent one gets it as a frequent pair does.
    assert "Ł" in pieces and "ŵ" not in pieces
    assert not any("<0x" in piece for piece in pieces)
    assert new.decode(new.encode(["ŵ Łukazin"])) == ["ŵ Łukazin"]
    parts = dict(zip(pieces, cut_new_pieces(old, new), strict=True))
    assert old.pieces(parts["Ł"]) == ["<0xC5>", "<0x81>"]


def test_words_that_end_with_the_mark(tmp_path, kind):
    old = foreign_tokenizer(
        OLD,
        tmp_path / "old.model",
        vocab_size=70,
        model_type=kind,
        treat_whitespace_as_suffix=True,
        hard_vocab_limit=False,
    )
    new, _ = extend(old, 40)
    pieces = new_pieces(old, new)
    assert any(len(p) > 1 and p.endswith("▁") for p in pieces)
    assert not any("▁" in piece[:-1] for piece in pieces)
    expected = old.decode(old.encode(OLD[:3]))
    assert new.decode(new.encode(OLD[:3])) == expected
    assert new.normalization.is_same(old.normalization)


def test_models_that_join_no_pieces_are_refused(tmp_path):
    old = foreign_tokenizer(
        OLD, tmp_path / "old.model", vocab_size=40, model_type="char"
    )
    with pytest.raises(UserError, match="type bpe or unigram.* type char"):
        check_extensible(old)


def test_nothing_is_added_where_nothing_is_new_and_no_pair_occurs_twice(train):
    old = train()
    new, added = extend(old, 50, ["the"])
    assert (added.characters, added.merges, new.sha256) == (0, 0, old.sha256)


def test_the_order_of_the_text_does_not_matter(train):
    old = train()
    first, _ = extend(old, 40)
    shuffled = random.Random(1).sample(NEW, len(NEW))
    assert extend(old, 40, shuffled)[0].sha256 == first.sha256


def test_the_parts_of_a_piece_are_what_it_was_cut_into(train):
    old = train()
    new, _ = extend(old, 60)
    pieces = new_pieces(old, new)
    parts = dict(zip(pieces, cut_new_pieces(old, new), strict=True))
    assert parts["Ł"].tolist() == [1]
    # As in the text, where the piece begins a word.
    for text in ("receives", "Patient"):
        assert equal([parts[f"▁{text}"]], old.encode([text]))
    with pytest.raises(ValueError, match="must begin with the pieces"):
        cut_new_pieces(new, old)


def test_a_joint_vocabulary_grows_once(train, tmp_path):
    old = train()
    models, added = extend_tokenizers(
        [old, old], 20, [[["ab ab xyz xyz"], ["ab ab ab"]]]
    )
    assert models[0] == models[1] and added[0].merges == added[1].merges
    assert added[0].tokens_after != added[1].tokens_after


def test_scores_that_are_large_still_fall(train, kind):
    model = model_pb2.ModelProto.FromString(train().proto)
    for piece in model.pieces:
        piece.score *= 1e7
    pieces = [NewPiece(text, ("a", "b")) for text in ("ab", "xab", "yab")]
    larger = model_pb2.ModelProto.FromString(
        extended_model(model.SerializeToString(), pieces)
    )
    if kind == "bpe":
        scores = [piece.score for piece in larger.pieces[-4:]]
        assert scores == sorted(set(scores), reverse=True)


def test_the_sample_is_spread_over_the_text(monkeypatch):
    monkeypatch.setattr(vocabulary_extension, "_SENTENCES_TO_COUNT", 4)
    sample = vocabulary_extension._Sample()
    for start in range(0, 100, 7):
        sample.add(map(str, range(start, min(100, start + 7))))
    assert sample.texts == [str(number) for number in range(0, 100, 16)]


def test_a_merge_counts_anew_only_the_words_that_it_changes(monkeypatch):
    draw = random.Random(2)
    words = Counter()
    for _ in range(3_000):
        letters = draw.choices("abcdefghijklmnop", k=draw.randint(2, 9))
        words["▁" + letters[0], *letters[1:]] += 1
    scores = {symbol: 0.0 for word in words for symbol in word}
    merger = PairMerger(words, scores, PieceRules(model_pb2.ModelProto()))
    changed = []
    join = PairMerger._join_by_score
    monkeypatch.setattr(
        PairMerger,
        "_join_by_score",
        lambda self, word, text: changed.append(1) or join(self, word, text),
    )
    assert len(list(merger.merges(100))) == 100
    assert len(changed) < 0.05 * 100 * len(words)
