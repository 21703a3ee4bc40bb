"""What must be true of a tokenizer whose texts begin with a token: it stands
before the tokens of every text that has some, and no text changes."""

import pytest
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt import UserError
from keras_deepnmt.data import Tokenizer, train_tokenizer
from keras_deepnmt.data.model_files import with_begin_symbol, with_vocabulary
from keras_deepnmt.data.text_steps import BeginSymbol

TEXTS = ["ein Hund", "  ein\tHund \n", f"e{BeginSymbol.symbol}in", "", " \t\n"]
BEGIN = "<bos>"


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A tokenizer of words, of which one piece is to be the begin token."""
    file = tmp_path_factory.mktemp("begin") / "words.model"
    plain = train_tokenizer(["ein kleiner Hund"] * 5, file, 26)
    pieces = plain.pieces(range(plain.vocabulary_size))
    return with_vocabulary(plain.proto, [*pieces, BEGIN])


def characters(words):
    """A tokenizer whose pieces are characters, with all spaces."""
    model = model_pb2.ModelProto.FromString(words)
    del model.pieces[4:]
    model.trainer_spec.model_type = model_pb2.TrainerSpec.CHAR
    model.normalizer_spec.Clear()
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = True
    names = [piece.piece for piece in model.pieces]
    return with_vocabulary(
        model.SerializeToString(), [*names, *"▁einHud\t\n", BEGIN]
    )


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_each_text_with_a_token_begins_with_it(words, kind, tmp_path):
    proto = words if kind == "words" else characters(words)
    (tmp_path / "plain.model").write_bytes(proto)
    (tmp_path / "begin.model").write_bytes(
        with_begin_symbol(proto, BEGIN, "begin.model")
    )
    plain = Tokenizer(tmp_path / "plain.model")
    tokenizer = Tokenizer(tmp_path / "begin.model")
    assert tokenizer.vocabulary_size == plain.vocabulary_size
    begin = plain.ids_of_pieces([BEGIN])
    found = [row.tolist() for row in tokenizer.encode(TEXTS)]
    texts = [text.replace(BeginSymbol.symbol, "") for text in TEXTS]
    rows = [row.tolist() for row in plain.encode(texts)]
    assert found == [begin + row for row in rows[:3]] + rows[3:]
    in_graph = tokenizer.in_graph_tokenizer()
    ids = in_graph.tokenize(tf.constant(TEXTS))
    assert ids.to_list() == found
    expected = plain.decode(rows)
    assert tokenizer.decode(found) == expected
    joined = in_graph.detokenize(ids).numpy()
    assert [text.decode() for text in joined] == expected
    spans = tokenizer.token_spans("ein Hund")
    assert spans == [(0, 0), *plain.token_spans("ein Hund")]
    assert set(tokenizer.word_numbers(found[0])) == {0, 1}


def test_a_model_without_a_place_for_it_is_refused(words):
    model = model_pb2.ModelProto.FromString(words)
    model.normalizer_spec.remove_extra_whitespaces = False
    with pytest.raises(UserError, match="remove_extra_whitespaces=False"):
        with_begin_symbol(model.SerializeToString(), BEGIN, "odd.model")
