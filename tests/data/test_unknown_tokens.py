"""What must be true of text that a given tokenizer does not fully know.

The unknown tokens of each side and split are counted; more than 0.1 % of them
are warned about, with examples.
"""

import dataclasses
import logging

import pytest
from toy_corpus import SIDES, prepare, toy_pairs, write_pairs

from keras_deepnmt import cli
from keras_deepnmt.data.manifest import describe_manifest
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.options import PrepareOptions


@pytest.fixture
def given(tmp_path):
    """Options with separate tokenizers that were trained on other text."""
    options = PrepareOptions(
        train=[write_pairs(tmp_path, "old", toy_pairs(200))],
        vocabulary_size=70,
        joint=False,
    )
    prepare(options, tmp_path / "old")
    models = [tmp_path / "old" / "tokenizer" / f"{s}.model" for s in SIDES]
    new = toy_pairs(150, seed=9)
    new[3] = ("the Łódź dog", "der Hund")
    new[4] = ("the dog", "der “Hund” 中")
    return dataclasses.replace(
        options,
        train=[write_pairs(tmp_path, "new", new)],
        valid=write_pairs(tmp_path, "valid", [*toy_pairs(5), ("a Ł", "Hund")]),
        tokenizer_source=str(models[0]),
        tokenizer_target=str(models[1]),
    )


def unknown_in(folder, split):
    store = PairStore(folder, split)
    pairs = store.read(range(len(store)))
    return [
        sum(int((ids == 1).sum()) for ids in side)
        for side in zip(*pairs, strict=True)
    ]


def test_unknown_tokens_of_each_side_and_split_are_counted(tmp_path, given):
    manifest = prepare(given, tmp_path / "out")
    for split in ("train", "valid"):
        counts = [
            manifest["splits"][split][f"{side}_unknown_tokens"]
            for side in SIDES
        ]
        assert counts == unknown_in(tmp_path / "out", split)
    assert counts == [1, 0]  # of the valid set
    assert manifest["splits"]["train"]["target_unknown_tokens"] == 3
    assert "3 target tokens are unknown" in describe_manifest(manifest)


def test_more_than_a_thousandth_is_warned_about(tmp_path, given, caplog):
    with caplog.at_level(logging.WARNING):
        manifest = prepare(given, tmp_path / "out")
    warned = [r.getMessage() for r in caplog.records if "unknown" in r.message]
    shares = {}
    for split, summary in manifest["splits"].items():
        for side in SIDES:
            unknown = summary[f"{side}_unknown_tokens"]
            shares[split, side] = unknown / summary[f"{side}_tokens"]
    above = [key for key, share in shares.items() if share > 0.001]
    assert len(warned) == len(above)
    text = "\n".join(warned)
    share = shares["valid", "source"]
    assert f"source tokens of the valid set ({share:.2%})" in text
    assert "target tokens of the valid set" not in text
    assert "source.model, such as Ł" in text


def test_few_unknown_tokens_are_not_warned_about(tmp_path, given, caplog):
    pairs = toy_pairs(4000, seed=9)
    pairs[5] = ("the dog Ł", "der Hund")
    many = dataclasses.replace(
        given, train=[write_pairs(tmp_path, "many", pairs)], valid=None
    )
    with caplog.at_level(logging.WARNING):
        manifest = prepare(many, tmp_path / "out")
    assert manifest["splits"]["train"]["source_unknown_tokens"] == 1
    assert "unknown" not in caplog.text


def test_pairs_that_are_left_out_do_not_count(tmp_path, given):
    short = dataclasses.replace(given, max_tokens=12, valid_pairs=0)
    manifest = prepare(short, tmp_path / "out")
    counts = unknown_in(tmp_path / "out", "train")
    assert manifest["filters"]["train"]["length"] > 0
    assert manifest["splits"]["train"]["source_unknown_tokens"] == counts[0]


def test_a_joint_tokenizer_counts_for_both_sides(tmp_path, given):
    joint = dataclasses.replace(given, joint=True, tokenizer_target=None)
    manifest = prepare(joint, tmp_path / "out")
    counts = [
        manifest["splits"]["train"][f"{side}_unknown_tokens"] for side in SIDES
    ]
    assert counts == unknown_in(tmp_path / "out", "train") and min(counts) > 0


def test_a_trained_tokenizer_has_no_such_counts(tmp_path, given):
    trained = dataclasses.replace(
        given, tokenizer_source=None, tokenizer_target=None
    )
    manifest = prepare(trained, tmp_path / "out")
    assert not [key for key in manifest["splits"]["valid"] if "unknown" in key]


def test_the_table_shows_the_counts(tmp_path, given, capsys):
    corpus = given.train[0]
    arguments = ["--source", corpus.source, "--target", corpus.target]
    arguments += ["--tokenizer-source", given.tokenizer_source]
    arguments += ["--tokenizer-target", given.tokenizer_target]
    arguments += ["--joint", "false", "--output", str(tmp_path / "out")]
    assert cli.main(["prepare", *arguments]) == 0
    shown = capsys.readouterr().err
    assert "target unknown tokens" in shown and "such as" in shown
