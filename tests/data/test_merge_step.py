"""What must be true of a tokenizer with codes of subword-nmt: it cuts each word
as subword-nmt does, in Python and in a graph; its ids are places in the
vocabulary; and what cannot be done with it is refused in a sentence."""

import json
import pickle
import time

import pytest
import tensorflow as tf
from merge_codes import (
    ODD,
    learned_codes,
    odd_lines,
    odd_words,
    original,
    texts,
)
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt import UserError
from keras_deepnmt.analysis.analyzed_run import shown_pieces
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.data.batches.segmentation import RandomSegmentation
from keras_deepnmt.data.merge_codes import MergeCodes, MergeOptions
from keras_deepnmt.data.merge_step import MergeStep
from keras_deepnmt.data.preparation.vocabulary_extension import (
    check_extensible,
)
from keras_deepnmt.exchange.vocabulary import Vocabulary

SPECIAL = ["<unk>", "<pad>", "<s>", "</s>"]
# Codes, their version, and whether merges are restricted to a vocabulary.
CASES = [
    (learned_codes, "0.2", False),
    (lambda: ODD + learned_codes(), "0.2", True),
    (lambda: ODD + learned_codes(), "0.1", True),
    # A text that has the mark of a word's end.
    (lambda: ["< /", "</ w", "</w >"] + learned_codes(), "0.1", False),
]


def frequent(bpe, words):
    """The pieces of more than three of the words."""
    counts: dict[str, int] = {}
    for word in words:
        for piece in bpe.segment(word).split(" "):
            counts[piece] = counts.get(piece, 0) + 1
    return [piece for piece, count in counts.items() if count > 3]


def made(case, number, **options):
    """Lines, how subword-nmt cuts them, and the step."""
    make_codes, version, is_restricted = case
    codes, lines = make_codes(), odd_lines(number)
    vocabulary = []
    if is_restricted:
        plain = original(codes, version)
        vocabulary = frequent(plain, odd_words(number))
        assert any(
            piece not in vocabulary
            for word in texts()[0].split()
            for piece in plain.segment(word).split()
        )
    bpe = original(codes, version, vocabulary)
    step = MergeStep(
        codes=codes, version=version, vocabulary=vocabulary, **options
    )
    return lines, [bpe.segment(line) for line in lines], step


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "number", [100, pytest.param(5000, marks=pytest.mark.thorough)]
)
def test_words_are_cut_as_by_subword_nmt(case, number):
    lines, expected, step = made(case, number)
    assert [step.before(line) for line in lines] == expected
    for line, text in zip(lines, expected, strict=True):
        places = step.places(line)
        assert len(places) == len(text) + 1
        assert places == sorted(places)
    divided = MergeStep(
        **{**step.options.model_dump(), "splits_at_all_spaces": True}
    )
    assert [divided.before(line) for line in lines] == [
        " ".join(text.split()) for text in expected
    ]


@pytest.mark.parametrize(
    ("case", "number"),
    [
        (CASES[1], 10),
        *(
            pytest.param(case, 2000, marks=pytest.mark.thorough)
            for case in CASES
        ),
    ],
)
def test_a_graph_cuts_words_as_subword_nmt(case, number):
    lines, expected, step = made(case, number)
    found = step.before_in_graph(tf.constant(lines)).numpy()
    assert [text.decode() for text in found] == expected
    joined = step.after_in_graph(tf.constant(expected)).numpy()
    assert [text.decode() for text in joined] == list(map(step.after, expected))
    divided = MergeStep(
        **{**step.options.model_dump(), "splits_at_all_spaces": True}
    )
    found = divided.before_in_graph(tf.constant(lines)).numpy()
    assert [text.decode() for text in found] == list(map(divided.before, lines))
    assert step.before_in_graph(tf.constant(lines[2])) == expected[2]
    assert step.before_in_graph(tf.zeros([0], tf.string)).shape == (0,)


def test_a_long_word_is_cut_at_once():
    codes = MergeCodes(MergeOptions(codes=learned_codes(), version="0.2"))
    start = time.process_time()
    codes.cut("".join(text.replace(" ", "") for text in texts()))
    assert time.process_time() - start < 2


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    codes = learned_codes()
    bpe = original(codes)
    pieces = {p for text in texts() for p in bpe.segment(text).split(" ")}
    names = [*SPECIAL, *sorted(pieces)]
    options = MergeOptions(codes=codes, version="0.2")
    vocabulary = Vocabulary("vocabulary.txt", names, 1, 0, 2, 3)
    file = tmp_path_factory.mktemp("merges") / "codes.model"
    file.write_bytes(vocabulary.merge_tokenizer(options))
    return Tokenizer(file)


def test_ids_are_places_in_the_vocabulary(tokenizer):
    bpe, lines = original(learned_codes()), odd_lines(10)
    names = tokenizer.pieces(range(tokenizer.vocabulary_size))
    places = {name.removeprefix("▁"): n for n, name in enumerate(names)}
    expected = [
        [places.get(piece, 1) for piece in bpe.segment(line).split(" ") if line]
        for line in lines
    ]
    # Unknown pieces in a row are a token each.
    assert any(row[:2] == [1, 1] for row in expected)
    rows = tokenizer.encode(lines)
    found = [row.tolist() for row in rows]
    blank = [not line.strip(" \r\n") for line in lines]
    for row, other, is_blank in zip(found, expected, blank, strict=True):
        assert row == ([] if is_blank else other)
    in_graph = tokenizer.in_graph_tokenizer()
    ids = in_graph.tokenize(tf.constant(lines))
    assert ids.dtype == tf.int32
    assert ids.to_list() == found
    assert in_graph.tokenize(tf.constant(lines[2])).numpy().tolist() == found[2]
    pieces = in_graph.tokenize_to_pieces(tf.constant(lines)).to_list()
    assert [[piece.decode() for piece in row] for row in pieces] == (
        tokenizer.encode_as_pieces(lines)
    )
    joined = in_graph.detokenize(ids).numpy()
    assert [text.decode() for text in joined] == tokenizer.decode(rows)
    assert tokenizer.decode(tokenizer.encode(texts())) == texts()
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert [row.tolist() for row in copy.encode(lines)] == found


def test_tokens_have_their_places_in_a_text(tokenizer):
    text = " ein  ☃☃ Hundehaus "
    pieces = tokenizer.encode_as_pieces([text])[0]
    surfaces = tokenizer.surfaces(text)
    assert [piece.strip("▁").removesuffix("@@") for piece in pieces] == surfaces
    assert "".join(surfaces) == "ein☃☃Hundehaus"
    words = tokenizer.token_words(text)
    assert sorted({*words}) == [(0,), (1,), (2,)]
    assert len(words) > 4
    (ids,) = tokenizer.encode(["ein Hundehaus ein"])
    numbers = tokenizer.word_numbers(ids)
    assert numbers == [0, *[1] * (len(ids) - 2), 2]
    shown = shown_pieces(tokenizer, ids)
    assert shown[0] == shown[-1] == "ein"
    assert "".join(shown[1:-1]).replace("-", "") == "Hundehaus"


def test_unknown_tokens_are_shown_in_their_words(tokenizer):
    (hund,) = tokenizer.ids_of_pieces(["▁ein"])
    assert tokenizer.decode([[hund, 1, hund]]) == ["ein ⁇ ein"]
    assert tokenizer.decode([[1, hund]]) == ["⁇ ein"]


def test_what_needs_a_model_of_sentencepiece_is_refused(tokenizer):
    with pytest.raises(UserError, match="codes of subword-nmt.*Leave out"):
        RandomSegmentation(tokenizer, 0.1)
    with pytest.raises(UserError, match="type bpe or unigram"):
        check_extensible(tokenizer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": ["a"]}, "step subword_nmt: `codes` must be two pieces"),
        ({"version": "0.3"}, "`version` must be '0.1' or '0.2'"),
        ({"separator": ""}, "`separator` must"),
        ({"separators": "@"}, "`separators` must"),
    ],
)
def test_a_damaged_file_is_named(tokenizer, tmp_path, change, message):
    codes = json.dumps({"codes": ["a b"], "version": "0.2"})
    options = {**json.loads(codes), **change}
    content = json.dumps(
        {"steps": ["subword_nmt"], "step_options": {"subword_nmt": options}}
    ).encode()
    model = model_pb2.ModelProto.FromString(tokenizer.proto)
    model.DiscardUnknownFields()
    size = bytes([len(content) & 127 | 128, len(content) >> 7])
    field = b"\xc2\x3e" + size + content
    file = tmp_path / "damaged.model"
    file.write_bytes(model.SerializeToString() + field)
    with pytest.raises(UserError, match=message) as error:
        Tokenizer(file)
    assert "damaged.model" in str(error.value)
