"""What must be true of options for a tokenizer that is given.

* those that ask for pieces that it lacks are refused, with the file
* those that only a training needs are named in one line
* those that say what it is, or have their defaults, are no mistake
* so also for one of an imported model, whose sources begin with a token
"""

import logging

import pytest
from toy_corpus import SIDES, decoded, prepare, toy_pairs, write_pairs

from keras_deepnmt.data.model_files import with_begin_symbol, with_vocabulary
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.errors import UserError

PAIRS = toy_pairs(60)
TRAINED = {
    "user_defined_symbols": ["<x>", "<y>"],
    "split_digits": True,
    "byte_fallback": True,
    "required_chars": "%Ł",
}


@pytest.fixture
def prepared(tmp_path):
    """Prepares the corpus with a given tokenizer, and other options."""
    texts = [text for pair in PAIRS for text in pair]

    def run(trained=None, **changes):
        given = tmp_path / "given.model"
        size = 350 if trained else 80
        train_tokenizer(texts, given, size, **trained or {})
        options = PrepareOptions(
            train=[write_pairs(tmp_path, "train", PAIRS)],
            tokenizer_source=str(given),
            **changes,
        )
        return prepare(options, tmp_path / "out", overwrite=True)

    return run


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"user_defined_symbols": ["<b>", "<a>"]}, "has not <a> <b>"),
        ({"required_chars": "e%"}, "has not %"),
        ({"split_digits": True}, "does not split digits"),
        ({"byte_fallback": True}, "has no pieces for bytes"),
    ],
)
def test_pieces_that_it_lacks_are_refused(prepared, tmp_path, option, said):
    (name,) = option
    with pytest.raises(UserError, match=f"^`{name}` must be left out") as error:
        prepared(**option)
    assert "given.model" in str(error.value) and said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_symbols_of_a_file_are_looked_for_too(prepared, tmp_path):
    (tmp_path / "symbols").write_text("<z>\n")
    with pytest.raises(UserError, match="has not <z>"):
        prepared(TRAINED, user_defined_symbols_file=str(tmp_path / "symbols"))


def test_what_it_has_may_be_asked_for(prepared, caplog):
    with caplog.at_level(logging.WARNING):
        manifest = prepared(TRAINED, **TRAINED, vocabulary_size=350)
    assert manifest["source_vocabulary_size"] == 350
    assert not caplog.records


def test_options_of_a_training_are_named_in_one_line(prepared, caplog):
    with caplog.at_level(logging.WARNING):
        prepared(
            vocabulary_size=71, model_type="unigram", character_coverage=0.99
        )
    (record,) = caplog.records
    for words in (
        "given.model is given, so these options have no effect",
        "vocabulary_size=71 (it has 80)",
        "model_type=unigram (it has bpe)",
        "character_coverage=0.99.",
    ):
        assert words in record.getMessage()


def test_each_of_two_tokenizers_is_looked_at(tmp_path):
    files = []
    for number, side in enumerate(SIDES):
        texts = [pair[number] for pair in PAIRS]
        files.append(str(tmp_path / side))
        train_tokenizer(
            texts,
            files[-1],
            70,
            user_defined_symbols="<x>"[: number * 3].split(),
        )
    options = PrepareOptions(
        train=[write_pairs(tmp_path, "train", PAIRS)],
        joint=False,
        tokenizer_source=files[0],
        tokenizer_target=files[1],
        user_defined_symbols=["<x>"],
    )
    with pytest.raises(UserError, match="source, which has not <x>"):
        prepare(options, tmp_path / "out")


def test_a_tokenizer_whose_texts_begin_with_a_token_is_used(tmp_path):
    texts = [text for pair in PAIRS for text in pair]
    plain = train_tokenizer(texts, tmp_path / "plain.model", 80)
    pieces = plain.pieces(range(plain.vocabulary_size))
    proto = with_vocabulary(plain.proto, [*pieces, "<bos>"])
    files = [tmp_path / f"{side}.model" for side in SIDES]
    files[0].write_bytes(with_begin_symbol(proto, "<bos>", "source.model"))
    files[1].write_bytes(proto)
    options = PrepareOptions(
        train=[write_pairs(tmp_path, "train", PAIRS)],
        joint=False,
        tokenizer_source=str(files[0]),
        tokenizer_target=str(files[1]),
        required_chars="e",
    )
    manifest = prepare(options, tmp_path / "out")
    assert manifest["source_vocabulary_size"] == 81
    assert decoded(tmp_path / "out", "train") == PAIRS
    (source, _) = PairStore(tmp_path / "out", "train").read([0])[0]
    assert source[0] == 80
