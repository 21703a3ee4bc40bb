"""What must be true of tokenizers.

Our special ids are where we say, models of others are brought into our order
or refused, and a graph cuts text exactly as Python does.
"""

import numpy as np
import pytest
import sentencepiece
from foreign_tokenizer import write_foreign_model

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.normalization import load_normalization
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.tokenizer_training import (
    train_tokenizer,
    training_sentences,
)
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.data.word_units import word_spans
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import UNKNOWN_ID

WORDS = (
    "der die das Hund Katze Vögel größer über Äpfel läuft schläft ﬁne".split()
)
RANDOM = np.random.default_rng(5)
TEXTS = [" ".join(RANDOM.choice(WORDS, 7)) for _ in range(300)]
TRICKY = [
    "der Hund läuft über das Größer",
    "der Hund la\u0308uft",  # decomposed
    "ﬁne ｆｕｌｌ ①",  # compatibility characters
    "  der \u00a0 Hund\t\u3000 läuft ",
    "東京 und der Hund 🐕",  # unknown characters
    "",
    "   ",
    "<s> der </s> <pad> <unk>",  # names of special pieces are plain text
    "▁der▁Hund",
]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "spm.model"
    return train_tokenizer(TEXTS, path, 41, request.param)


def foreign_model(path, **ids):
    options = {"vocab_size": 41, "normalization_rule_name": "nfkc"}
    write_foreign_model(TEXTS, path, **options, **ids)
    return sentencepiece.SentencePieceProcessor(str(path))


def test_special_ids_are_the_first_four(tokenizer):
    assert tokenizer.vocabulary_size == 41
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_text_comes_back(tokenizer):
    rows = tokenizer.encode(TEXTS[:50])
    assert all(row.dtype == np.int32 and row.min() > 3 for row in rows)
    expected = [text.replace("ﬁ", "fi") for text in TEXTS[:50]]
    assert tokenizer.decode(rows) == expected


def test_few_sentences_and_many_are_segmented_alike(tokenizer, monkeypatch):
    texts = ["ab ba", "", "b", " a  b "] * 60
    rows = tokenizer.encode(texts)
    few = [row for text in texts for row in tokenizer.encode([text])]
    assert [row.tolist() for row in rows] == [row.tolist() for row in few]
    decoded = tokenizer.decode(rows)
    assert decoded == [tokenizer.decode([row])[0] for row in rows]
    assert decoded[:3] == ["ab ba", "", "b"]
    # No thread is started for few sentences.
    monkeypatch.setattr(tokenizer, "_processor", SingleCalls(tokenizer))
    assert tokenizer.decode(rows[:32]) == decoded[:32]
    tokenizer.encode(texts[:32])


class SingleCalls:
    """A SentencePiece model that refuses lists."""

    def __init__(self, tokenizer):
        self._processor = tokenizer._processor

    def encode(self, text):
        assert isinstance(text, str)
        return self._processor.encode(text)

    def decode(self, ids):
        assert not ids or isinstance(ids[0], int)
        return self._processor.decode(ids)


def test_decoding_ends_at_the_first_end_and_drops_special_ids(tokenizer):
    (hund,) = tokenizer.encode(["Hund"])
    row = [2, *hund, 0, 3, *hund, 0]
    assert tokenizer.decode([row, [], [3]]) == ["Hund", "", ""]
    assert tokenizer.decode([]) == []
    assert tokenizer.decode(np.array([row, row])) == ["Hund", "Hund"]


def test_unknown_characters_give_the_unknown_id(tokenizer):
    (row,) = tokenizer.encode(["東"])
    assert 1 in row and set(row.tolist()) & {0, 2, 3} == set()
    assert "⁇" in tokenizer.decode([row])[0]


@pytest.mark.parametrize("outside", [41, -1, 10**12])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, outside):
    with pytest.raises(ValueError, match=r"inside the vocabulary, 0\.\.40"):
        tokenizer.decode([[5, outside]])


def test_one_string_is_refused(tokenizer):
    with pytest.raises(ValueError, match="must be a list"):
        tokenizer.encode("der Hund")


def test_the_graph_cuts_text_in_a_dataset(tokenizer):
    import tensorflow as tf

    in_graph = tokenizer.in_graph_tokenizer()
    expected = [row.tolist() for row in tokenizer.encode(TRICKY)]
    lines = tf.data.Dataset.from_tensor_slices(TRICKY)
    cut = lines.map(in_graph.tokenize)
    assert [row.numpy().tolist() for row in cut] == expected


def test_training_twice_gives_the_same_model(tokenizer, tmp_path):
    # The seed of the draw matters where the text is longer than the limit.
    for limit in (1_000_000, 101):
        pair = [
            train_tokenizer(
                iter(TEXTS), tmp_path / "m", 40, max_sentences=limit, seed=5
            ).proto
            for _ in range(2)
        ]
        assert pair[0] == pair[1]


def test_files_and_sentences_give_the_same_model(tmp_path):
    text = tmp_path / "text"
    text.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    by_file = train_tokenizer([text], tmp_path / "a.model", 40)
    by_text = train_tokenizer(TEXTS, tmp_path / "b.model", 40)
    assert by_file.sha256 == by_text.sha256


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_a_vocabulary_too_large_names_the_largest(tmp_path, model_type):
    with pytest.raises(UserError, match="The largest possible is") as caught:
        train_tokenizer(TEXTS, tmp_path / "m", 5_000, model_type)
    largest = int(str(caught.value).rstrip(".").rsplit(" ", 1)[1])
    made = train_tokenizer(TEXTS, tmp_path / "m", largest, model_type)
    assert made.vocabulary_size == largest


def test_the_lowest_character_coverage_leaves_out_rare_characters(tmp_path):
    corpus = CorpusOptions("train.en", "train.de")
    assert PrepareOptions(train=[corpus], character_coverage=0.98)
    text = ["abcdefgh" * 5] * 50 + ["z"]
    least, full = (
        train_tokenizer(
            *(text, tmp_path / "tokens.model", 20), character_coverage=coverage
        )
        for coverage in (0.98, 1.0)
    )
    assert UNKNOWN_ID in least.encode(["z"])[0]
    assert UNKNOWN_ID not in full.encode(["z"])[0]


def test_long_lines_are_learned_from(tmp_path):
    """SentencePiece itself leaves out lines of more than 4,192 bytes."""
    sentences = [
        text
        for number in range(300)
        for text in (" ".join(RANDOM.choice(WORDS, 9)), f"§{number}")
    ]
    long = [" ".join(sentences)]
    assert len(long[0].encode()) > 3 * 4192
    # The same words; a place of a cut is the beginning of a line.
    by_line = train_tokenizer(sentences, tmp_path / "a.model", 120)
    by_page = train_tokenizer(long, tmp_path / "b.model", 120)
    ids = range(120)
    assert by_page.pieces(ids) == by_line.pieces(ids)
    # 2,000 characters of three bytes each, without a space.
    word = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
    rule = load_normalization("nfkc")
    parts = list(training_sentences([f"{word} a", "b"], rule))
    assert "".join(parts) == f"{word} ab"
    assert max(len(part.encode()) for part in parts) <= 4192
    tokenizer = train_tokenizer([word], tmp_path / "c.model", 2010)
    assert UNKNOWN_ID not in tokenizer.encode([word])[0]


def test_characters_in_the_names_of_special_pieces_get_pieces(tmp_path):
    texts = ["a <s> b </s> c <unk> d <pad> ok <0x4B>"] * 9
    tokenizer = train_tokenizer(texts, tmp_path / "m", 40)
    (row,) = tokenizer.encode(texts[:1])
    assert UNKNOWN_ID not in row
    assert tokenizer.decode([row]) == texts[:1]


@pytest.mark.parametrize("character", ["\t", "▅", "\0"])
def test_characters_that_can_have_no_piece_cost_no_line(tmp_path, character):
    texts = [f"ein{character}Hund", f"zwei{character}Katzen"] * 9
    tokenizer = train_tokenizer(
        texts, tmp_path / "m", 25, normalization="identity"
    )
    assert UNKNOWN_ID not in np.concatenate(
        tokenizer.encode("ein Hund zwei Katzen".split())
    )


def test_required_characters_get_pieces(tmp_path):
    texts = ["abcdefgh" * 5] * 50 + ["z"]
    tokenizer = train_tokenizer(
        *(texts, tmp_path / "m", 22),
        character_coverage=0.98,
        required_chars="z<😀",
    )
    assert UNKNOWN_ID not in tokenizer.encode(["z<😀"])[0]
    assert UNKNOWN_ID in tokenizer.encode([">"])[0]


def test_digits_can_be_single_pieces(tmp_path):
    texts = ["in 2019", "in 2018"] * 20
    cut = [
        train_tokenizer(texts, tmp_path / "m", size, split_digits=split)
        for split, size in ((False, 18), (True, 15))
    ]
    digits = [
        [p for p in t.pieces(t.encode(["in 2019"])[0]) if "201" in p]
        for t in cut
    ]
    assert digits[0] and not digits[1]


def test_unknown_characters_can_be_bytes(tmp_path):
    tokenizer = train_tokenizer(TEXTS, tmp_path / "m", 300, byte_fallback=True)
    text = "東京 und der Hund 🐕"
    (row,) = tokenizer.encode([text])
    assert UNKNOWN_ID not in row
    assert tokenizer.decode([row]) == [text]
    assert tokenizer.surfaces(text)[-1] in ("🐕", "")
    # The last token of a character in bytes belongs to its word, too. 東 and 京
    # are two words.
    assert tokenizer.token_words(text)[-1] == (5,)


def test_symbols_of_users_are_one_piece_as_they_are(tmp_path):
    symbols = ["⟪NAME_1⟫", "①", "<2de>"]
    texts = [f"{text} ① ⟪NAME_1⟫." for text in TEXTS]
    tokenizer = train_tokenizer(
        texts, tmp_path / "m", 60, user_defined_symbols=symbols
    )
    (row,) = tokenizer.encode(["<2de> der ①Hund ⟪NAME_1⟫."])
    assert tokenizer.user_defined_symbols == symbols
    assert {*symbols} <= {*tokenizer.pieces(row)}
    assert tokenizer.decode([row]) == ["<2de> der ①Hund ⟪NAME_1⟫."]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"treat_whitespace_as_suffix": True},
        {"split_by_whitespace": False},
        {"treat_whitespace_as_suffix": True, "split_by_whitespace": False},
    ],
)
def test_tokens_belong_to_the_words_of_the_line(tmp_path, options):
    foreign_model(tmp_path / "m", **options)
    tokenizer = Tokenizer(tmp_path / "m")
    for text in (
        "der  Hund\u00a0\u00a0läuft",
        "¨ der Hund\u2003läuft¨",
        " der Hund´s Katze Токио Größer ",
        "der",
        "",
    ):
        numbers = tokenizer.token_words(text)
        spans = tokenizer.token_spans(text)
        words = text.split()
        for span, of_token in zip(spans, numbers, strict=True):
            visible = text[slice(*span)].split()
            # All that a token shows is in its words.
            for part in visible:
                assert any(part in words[number] for number in of_token)
            if not options:
                assert len(of_token) == 1 and len(visible) < 2
        assert sorted({n for of in numbers for n in of}) == [*range(len(words))]


def test_no_space_is_left_where_marks_end_words(tmp_path):
    foreign_model(tmp_path / "m", treat_whitespace_as_suffix=True)
    tokenizer = Tokenizer(tmp_path / "m")
    texts = ["der Hund läuft", "", "die Katze"]
    rows = tokenizer.encode(texts)
    assert tokenizer.decode(rows) == texts
    assert tokenizer.decode_pieces(tokenizer.pieces(rows[0])) == texts[0]
    assert tokenizer.word_numbers(rows[0])[-1] == 2
    graph = tokenizer.in_graph_tokenizer()
    assert [
        text.decode()
        for text in graph.detokenize(graph.tokenize(texts)).numpy()
    ] == texts


def test_a_vocabulary_too_small_names_the_smallest(tmp_path):
    with pytest.raises(UserError, match="Give at least") as caught:
        train_tokenizer(TEXTS, tmp_path / "m", 6)
    smallest = int(str(caught.value).split("at least ")[1].split(",")[0])
    assert train_tokenizer(TEXTS, tmp_path / "m", smallest)
    assert list(tmp_path.iterdir()) == [tmp_path / "m"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError("gone")])
def test_what_stops_the_reading_of_the_text_is_not_disguised(tmp_path, failure):
    def texts():
        yield from ["a rose is a rose"] * 200
        raise failure

    with pytest.raises(type(failure)):
        train_tokenizer(texts(), tmp_path / "x.model", 12)
    assert not list(tmp_path.iterdir())


def test_no_text_is_refused(tmp_path):
    with pytest.raises(UserError, match="no text"):
        train_tokenizer([], tmp_path / "m", 40)
    with pytest.raises(ValueError, match="model_type"):
        train_tokenizer(TEXTS, tmp_path / "m", 40, "word")


@pytest.mark.parametrize(
    ("ids", "size"),
    [
        ({}, 42),  # <unk> <s> </s>, no padding: SentencePiece's default
        ({"unk_id": 3, "bos_id": 0, "pad_id": 1, "eos_id": 2}, 41),
        ({"unk_id": 0, "bos_id": 39, "pad_id": 40, "eos_id": 38}, 41),
        ({"user_defined_symbols": ["<pad>"]}, 42),  # the name is taken
        ({"byte_fallback": False, "pad_id": 3, "pad_piece": "[PAD]"}, 41),
    ],
)
def test_models_with_other_special_ids_are_mapped(tmp_path, ids, size):
    other = foreign_model(tmp_path / "m", **ids)
    ours = Tokenizer(tmp_path / "m")
    assert ours.vocabulary_size == size
    assert ours.pieces([1, 2, 3]) == ["<unk>", "<s>", "</s>"]
    for text in TRICKY + TEXTS[:20]:
        (row,) = ours.encode([text])
        pieces = [other.id_to_piece(i) for i in other.encode(text)]
        assert ours.pieces(row) == pieces
        assert ours.decode([row])[0] == other.decode(other.encode(text))
    ours.save(tmp_path / "saved")
    again = Tokenizer(tmp_path / "saved")
    assert again.sha256 == ours.sha256 and again.proto == ours.proto


def test_models_without_begin_or_end_are_refused(tmp_path):
    foreign_model(tmp_path / "m", bos_id=-1)
    with pytest.raises(UserError, match="m: .* lacks: bos_id"):
        Tokenizer(tmp_path / "m")


@pytest.mark.parametrize("content", [b"", b"no model", b"\x0a\x03abc" * 9])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(UserError, match="m: not a SentencePiece model"):
        Tokenizer(tmp_path / "m")
    with pytest.raises(UserError, match="nowhere: no tokenizer"):
        Tokenizer(tmp_path / "nowhere")


def test_letters_are_words_of_the_line_as_it_is_given(tmp_path):
    # NFKC makes two letters of № and three points of …
    texts = ["No No ... 我 用 书 , "] * 9
    tokenizer = train_tokenizer(texts, tmp_path / "m", 18)
    text = "我\u200b№用…\u3000书，"
    (row,) = tokenizer.encode([text])
    assert tokenizer.decode([row]) == ["我No用... 书,"]
    words = [text[slice(*span)] for span in word_spans(text)]
    assert words == ["我", "№", "用", "…", "书", "，"]
    for span, of_token in zip(
        tokenizer.token_spans(text), tokenizer.token_words(text), strict=True
    ):
        visible = text[slice(*span)].strip(" \u200b\u3000")
        assert visible in "".join(words[number] for number in of_token)
    assert {n for of in tokenizer.token_words(text) for n in of} == {*range(6)}
