"""What must be true of replacing unknown tokens.

* the word that an unknown token is aligned with is copied, or translated by
  the table
* where a word has known letters, only its unknown characters are copied
* punctuation stays, and so do translations without an unknown token
"""

import keras
import numpy as np
import pytest
from foreign_tokenizer import foreign_tokenizer

from keras_deepnmt import Translator, UserError, create_model
from keras_deepnmt.analysis import (
    read_word_table,
    replace_unknown,
    word_alignments,
)
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.data.merge_codes import MergeOptions
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.exchange.vocabulary import Vocabulary
from keras_deepnmt.translator import Hypothesis

pytestmark = pytest.mark.thorough(each_commit=True)

TEXTS = ['the dog lives in Berlin, she said: "yes" 東京.'] * 20


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    file = tmp_path_factory.mktemp("tokenizer") / "joint.model"
    tokenizer = train_tokenizer(TEXTS, file, 64)
    keras.utils.set_random_seed(1)
    size = tokenizer.vocabulary_size
    model = create_model("transformer_tiny", size, size)
    return Translator(model, tokenizer, tokenizer, compiled=False)


@pytest.fixture
def replaced(translator, monkeypatch):
    return replacer(translator, monkeypatch)


def replacer(translator, monkeypatch):
    """Replaces the unknown tokens of a text, aligned with the words in order.

    The words of the translation are aligned with the source words at `order`;
    in a word, tokens are with tokens, or with those before them.
    """

    def run(source, text, order=None, table=None, shift=0):
        sides = []
        for side in (source, text):
            (ids,) = translator.source_tokenizer.encode([side])
            sides.append((ids, translator.source_tokenizer.word_numbers(ids)))
        (_, source_words), (ids, words) = sides

        def position(t):
            word = words[t] if order is None else order[words[t]]
            tokens = [s for s, w in enumerate(source_words) if w == word]
            place = t - words.index(words[t]) - shift
            return tokens[min(max(place, 0), len(tokens) - 1)]

        def fake(model, name):
            def recorded(inputs):
                rows, length = inputs["target_ids"].shape
                width = inputs["source_ids"].shape[1]
                weights = np.zeros((rows, 1, length, width))
                for t in range(len(ids)):
                    weights[:, :, t, position(t)] = 1.0
                return {name: weights}

            return recorded

        monkeypatch.setattr(word_alignments, "record", fake)
        (shown,) = translator.target_tokenizer.decode([ids])
        hypothesis = Hypothesis(shown, -1.0, -2.0, (*ids.tolist(), 3))
        assert "⁇" in shown or source == text
        (found,) = replace_unknown(translator, [source], [hypothesis], table)
        assert found.ids == hypothesis.ids and found.score == hypothesis.score
        return found.text

    return run


def test_the_aligned_word_is_copied_without_its_punctuation(replaced):
    assert replaced("dog in Łódź", "in ШШШ dog", [1, 2, 0]) == "in Łódź dog"
    assert replaced("dog, «Łódź»,", "ШШ, dog", [1, 0]) == "Łódź, dog"
    # A word that is known in the source.
    assert replaced("Berlin, dog", "dog ШШ.", [1, 0]) == "dog Berlin."


@pytest.mark.parametrize("options", [{"treat_whitespace_as_suffix": True}, {}])
def test_words_may_end_with_the_mark_of_a_space(tmp_path, monkeypatch, options):
    replaced = replacer(foreign_translator(tmp_path, options), monkeypatch)
    assert replaced("dog in Łódź", "in ШШШ dog", [1, 2, 0]) == "in Łódź dog"
    assert replaced("Berlin, dog", "dog ШШ.", [1, 0]) == "dog Berlin."
    assert replaced("in Łódź, dog", "in Шaa, dog", None, {"Łódź": "Lodz"}) == (
        "in Lodz, dog"
    )
    assert replaced("„dog“ lives", "„dog“ lives") == "„dog“ lives"


def test_words_stay_that_share_a_piece_with_an_unknown_one(
    tmp_path, monkeypatch
):
    options = {"split_by_whitespace": False, "vocab_size": 90}
    translator = foreign_translator(tmp_path, options)
    assert translator.target_tokenizer.crosses_spaces
    replaced = replacer(translator, monkeypatch)
    for text in ("the dog lives Ш Berlin, she", "Ш dog lives in Berlin, she"):
        found = replaced("Łódź", text, [0] * 6)
        assert found.split() == text.replace("Ш", "Łódź").split()


def test_case_symbols_belong_to_the_word_that_is_copied(tmp_path, monkeypatch):
    tokenizer = train_tokenizer(TEXTS, tmp_path / "m", 64, case="factored")
    size = tokenizer.vocabulary_size
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = create_model("transformer_tiny", size, size, **layers)
    translator = Translator(model, tokenizer, tokenizer, compiled=False)
    replaced = replacer(translator, monkeypatch)
    for text in ("the dog lives in Łódź.", "THE DOG, ŁÓDŹ", "She: Łódź, łódź"):
        assert replaced(text, text) == text
    # A symbol holds for the copied word.
    for unknown, copied in (("шш", "łódź"), ("Шш", "Łódź"), ("ШШ", "ŁÓDŹ")):
        text = replaced("łódź, dog", f"dog {unknown}.", [1, 0])
        assert text == f"dog {copied}."
    assert replaced("in łódź", "In Шшш", None, {"łódź": "lodz"}) == "In Lodz"


def foreign_translator(folder, options):
    """A translator whose tokenizer SentencePiece alone trained."""
    options = {"vocab_size": 64, **options}
    tokenizer = foreign_tokenizer(TEXTS, folder / "m", **options)
    size = tokenizer.vocabulary_size
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    made = create_model("transformer_tiny", size, size, **layers)
    return Translator(made, tokenizer, tokenizer, compiled=False)


def test_an_entry_of_the_table_replaces_the_word(replaced):
    table = {"Łódź": "Lodz", "dog": "хор"}
    assert replaced("in Łódź, dog", "in Шaa, dog", None, table) == (
        "in Lodz, dog"
    )
    assert replaced("dog.", "ШШ:", None, table) == "хор:"
    assert replaced("in Łódź.", "in ШШ.", None, {"in": "x"}) == "in Łódź."


def test_unknown_characters_of_a_known_word_are_copied(replaced):
    assert replaced("„dog“ lives", "„dog“ lives") == "„dog“ lives"
    assert replaced("Łódź", "Łódź") == "Łódź"
    assert replaced("€ dog", "Ш dog") == "€ dog"


def test_a_space_stands_for_what_follows(translator, replaced):
    (ids,) = translator.source_tokenizer.encode(["„dog lives"])
    assert translator.source_tokenizer.pieces(ids)[:2] == ["▁", "<unk>"]
    # The unknown token is aligned with the space before that of the source.
    assert replaced("„dog lives", "„dog lives", shift=1) == "„dog lives"
    assert replaced("北dog東", "Шdog", shift=1) == "北dog"


def test_scripts_without_spaces_have_no_words(replaced):
    # Only the token is copied, not the sentence.
    source = "北dog東in海"
    assert replaced(source, "Шdog") == "北dog"
    # Nor is a whole sentence replaced.
    assert replaced("Łódź in", "東Ш京") == "東Łódź京"


def test_the_longest_word_of_the_table_counts_without_spaces(replaced):
    table = {
        "北": "N",
        "海岸": "coast",
        "東海岸": "east coast",
        "東京": "Tokyo",
    }
    # The token of 海岸, which the vocabulary lacks, stands in 東海岸.
    assert replaced("東海岸", "ШШ", None, table, shift=-1) == "east coast"
    assert replaced("海岸東", "ШШ", None, table) == "coast"
    assert replaced("海北", "ШШ", None, {"岸": "x"}) == "海北"
    # Khmer and Thai texts may have U+200B between words.
    assert replaced("海岸\u200b東", "ШШ", None, table) == "coast"


def test_what_is_known_stays(translator, replaced):
    assert replaced("the dog.", "the dog.") == "the dog."
    assert replace_unknown(translator, [], []) == []
    with pytest.raises(ValueError, match="the same length"):
        replace_unknown(translator, ["dog"], [])


def test_too_long_translations_keep_their_unknown_tokens(translator):
    tokenizer = translator.source_tokenizer
    ids = tuple(tokenizer.encode(["Ш dog in Ш"])[0].tolist())
    hypothesis = Hypothesis(" ⁇ ", 0.0, 0.0, (*ids, 3))
    for longest, is_kept in ((4, True), (8, False)):
        model = create_model(
            "transformer_tiny",
            tokenizer.vocabulary_size,
            tokenizer.vocabulary_size,
            max_length=longest,
        )
        short = Translator(
            model, tokenizer, tokenizer, compiled=False, max_source_length=4
        )
        # Of the source, the beginning counts.
        (found,) = replace_unknown(
            short, ["the dog runs in the house"], [hypothesis]
        )
        assert (found == hypothesis) == is_kept


def test_a_table_is_read(tmp_path):
    file = tmp_path / "words.tsv"
    file.write_text("Łódź\tLodz\nNew York \tNY\nŁódź\tx\n")
    assert read_word_table(file) == {"Łódź": "Lodz", "New York": "NY"}
    for wrong in ("a b\n", "a\t\n", "a\tb\tc\n"):
        file.write_text("a\tb\n" + wrong)
        with pytest.raises(UserError, match="line 2: must be a source word"):
            read_word_table(file)


def test_tokens_know_the_text_that_they_stand_for(translator):
    tokenizer = translator.source_tokenizer
    text = "the  Łódź\u00a0„dog“ ①"
    surfaces = tokenizer.surfaces(text)
    assert len(surfaces) == len(tokenizer.encode([text])[0])
    assert "".join(surfaces) == "theŁódź„dog“①"
    (ids,) = tokenizer.encode(["the dog"])
    pieces = tokenizer.pieces(ids)
    assert tokenizer.decode_pieces(pieces) == "the dog"
    assert tokenizer.decode_pieces([*pieces, "▁", "Łódź b"]) == (
        "the dog Łódź b"
    )
    assert tokenizer.decode_pieces([]) == ""


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("the Łódź dog", "the ☃ dog", "the Łódź dog"),
        ("doŁg the", "do☃g the", "doŁg the"),  # a part of a word
        ("Ł the", "☃ the", "Ł the"),
        ("the dŁ", "the d☃", "the dŁ"),
    ],
)
def test_words_that_codes_cut_are_joined(
    tmp_path, monkeypatch, source, text, expected
):
    codes = ["d o", "do g</w>", "t h", "th e</w>"]
    pieces = ["<unk>", "<s>", "</s>", "the", "dog", "do@@", "d@@", "g"]
    vocabulary = Vocabulary("vocabulary.txt", pieces, None, 0, 1, 2)
    proto = vocabulary.merge_tokenizer(MergeOptions(codes=codes, version="0.2"))
    (tmp_path / "codes.model").write_bytes(proto)
    tokenizer = Tokenizer(tmp_path / "codes.model")
    size = tokenizer.vocabulary_size
    model = create_model("transformer_tiny", size, size)
    translator = Translator(model, tokenizer, tokenizer, compiled=False)
    assert replacer(translator, monkeypatch)(source, text) == expected
