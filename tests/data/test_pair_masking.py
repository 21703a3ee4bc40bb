"""What must be true of mask symbols in training pairs.

* what both sides have is replaced by the same symbol; tags and unequal items
  are not
* names and numbers are replaced in a share of the pairs, the same in each run
* both tokenizers get the symbols; validation and test text stay as they are
* given tokenizers need the symbols
"""

import logging
import re

import pytest
from toy_corpus import SIDES, decoded, prepare, write_pairs

from keras_deepnmt.cli import main
from keras_deepnmt.data.mask_symbols import mask_symbols
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.pair_masking import PairMasker
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError

SYMBOL = re.compile(r"⟪\d+⟫")


def masked(source, target, number=4, share=1.0, row=0):
    return PairMasker(number, 0, share).mask(row, source, target)


def same_but_for_symbols(text, original):
    pattern = ".+".join(map(re.escape, SYMBOL.split(text)))
    return re.fullmatch(pattern, original) is not None


def test_equal_items_get_the_same_symbols():
    pair = "{a} sieht www.x.de und %s.", "%s and www.x.de sees {a}."
    source, target = masked(*pair)
    symbols = SYMBOL.findall(source)
    assert len(set(symbols)) == 3
    # They rise with the places in the source.
    assert symbols == sorted(symbols)
    assert source == "{} sieht {} und {}.".format(*symbols)
    assert target == "{2} and {1} sees {0}.".format(*symbols)


def test_items_that_occur_twice_are_paired_in_order():
    source, target = masked("%s und %s", "%s and %s")
    assert SYMBOL.findall(source) == SYMBOL.findall(target)
    assert len(set(SYMBOL.findall(source))) == 2


@pytest.mark.parametrize(
    "pair",
    [
        ("{a} ist da", "{b} is there"),
        ("%s ist da", "%s and %s are there"),
        ("<b>das</b> da", "<b>that</b> there"),
        ("das ist gut", "that is good"),
        ("in der Stadt", "in the town"),  # no name
    ],
)
def test_other_pairs_stay(pair):
    assert masked(*pair) == pair


def test_names_and_numbers_are_masked_in_a_share_of_the_pairs():
    pair = "Emil hat 12 Hunde.", "Emil has 12 dogs."
    source, target = masked(*pair)
    assert len(SYMBOL.findall(source)) == 2
    assert SYMBOL.findall(source) == SYMBOL.findall(target)
    rows = [masked(*pair, share=0.3, row=row) for row in range(1000)]
    assert 250 < sum(row != pair for row in rows) < 350
    assert rows == [masked(*pair, share=0.3, row=row) for row in range(1000)]
    # Items are masked in all of them.
    pair = "Emil hat {n}.", "Emil has {n}."
    assert all(
        "{n}" not in masked(*pair, share=0.3, row=r)[0] for r in range(9)
    )


def test_there_are_no_more_symbols_than_the_tokenizers_have():
    words = " ".join(f"{{x{n}}}" for n in range(9))
    source, target = masked(words, words, number=3)
    assert sorted(SYMBOL.findall(source)) == ["⟪1⟫", "⟪2⟫", "⟪3⟫"]
    assert source == target
    assert source.count("{") == 6


def test_a_symbol_of_the_text_is_not_used_again():
    source, target = masked("⟪1⟫ {a}", "{a} there", number=2)
    assert (source, target) == ("⟪1⟫ ⟪2⟫", "⟪2⟫ there")


def corpus(number):
    return [
        (f"Emil sieht {{n}} Nr. {row}", f"{{n}} sees no. {row} Emil")
        for row in range(number)
    ]


@pytest.fixture
def options(tmp_path):
    return PrepareOptions(
        train=[write_pairs(tmp_path, "train", corpus(150))],
        valid=write_pairs(tmp_path, "valid", corpus(5)),
        vocabulary_size=70,
        mask_symbols=3,
    )


def test_training_pairs_alone_are_masked(tmp_path, options):
    manifest = prepare(options, tmp_path / "out")
    assert manifest["splits"]["train"]["masked_pairs"] == 150
    assert "masked_pairs" not in manifest["splits"]["valid"]
    tokenizers = [
        Tokenizer(tmp_path / "out" / "tokenizer" / f"{side}.model")
        for side in SIDES
    ]
    assert mask_symbols(*tokenizers) == ["⟪1⟫", "⟪2⟫", "⟪3⟫"]
    for tokenizer in tokenizers:
        for symbol in ("⟪1⟫", "⟪3⟫"):
            (ids,) = tokenizer.encode([f"a{symbol}b"])
            assert symbol in tokenizer.pieces(ids)
    pairs = decoded(tmp_path / "out", "train")
    for pair, original in zip(pairs, corpus(150), strict=True):
        assert SYMBOL.search(pair[0])
        assert sorted(SYMBOL.findall(pair[0])) == sorted(
            SYMBOL.findall(pair[1])
        )
        for text, given in zip(pair, original, strict=True):
            assert same_but_for_symbols(text, given)
    assert decoded(tmp_path / "out", "valid") == corpus(5)
    text = (tmp_path / "out" / "valid.source.txt").read_text()
    assert text.splitlines() == [pair[0] for pair in corpus(5)]


def test_the_same_options_give_the_same_folder(tmp_path, options):
    first = prepare(options, tmp_path / "first")
    second = prepare(options, tmp_path / "second")
    assert first == second
    assert prepare(options, tmp_path / "first") == first  # used as it is


def test_the_command_prints_how_many_pairs_are_masked(tmp_path, capsys):
    corpora = write_pairs(tmp_path, "train", corpus(150))
    words = ["prepare", "--source", corpora.source, "--target", corpora.target]
    words += ["--output", str(tmp_path / "out"), "--vocabulary-size", "70"]
    assert main([*words, "--mask-symbols", "2"]) == 0
    assert re.search(r"masked pairs\W+150\b", capsys.readouterr().err)


def test_text_without_anything_to_mask_is_warned_about(tmp_path, caplog):
    pairs = [
        (f"der Hund {'x' * n}", f"the dog {'y' * n}") for n in range(1, 40)
    ]
    options = PrepareOptions(
        train=[write_pairs(tmp_path, "train", pairs)],
        vocabulary_size=40,
        mask_symbols=2,
    )
    with caplog.at_level(logging.WARNING):
        manifest = prepare(options, tmp_path / "out")
    assert manifest["splits"]["train"]["masked_pairs"] == 0
    assert "no training pair got a mask symbol" in caplog.text


def test_given_tokenizers_need_the_symbols(tmp_path, options):
    prepare(options, tmp_path / "old")
    model = str(tmp_path / "old" / "tokenizer" / "source.model")
    given = {
        "train": options.train,
        "tokenizer_source": model,
        "tokenizer_target": str(tmp_path / "old/tokenizer/target.model"),
    }
    manifest = prepare(
        PrepareOptions(**given, mask_symbols=3), tmp_path / "new"
    )
    assert manifest["splits"]["train"]["masked_pairs"] == 150
    with pytest.raises(UserError, match="mask_symbols=4 and tokenizers with 3"):
        prepare(PrepareOptions(**given, mask_symbols=4), tmp_path / "none")
