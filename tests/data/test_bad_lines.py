"""What must be true of lines that `prepare` cannot use.

All are named at once, with file and line; `errors` decides whether they stop
the work, and a table lists every pair that is left out, with its reason.
"""

import dataclasses
import logging
from pathlib import Path

import numpy as np
import pytest
from toy_corpus import (
    decoded,
    names_beside,
    prepare,
    toy_pairs,
    write_pairs,
)

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.manifest import describe_manifest
from keras_deepnmt.data.preparation import folder_writer, pair_encoding
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError, UserErrors


def spoil(file, *numbers):
    """Puts a byte that is not UTF-8 before the lines of these numbers."""
    lines = Path(file).read_bytes().split(b"\n")
    for number in numbers:
        lines[number - 1] = b"\xfc" + lines[number - 1]
    Path(file).write_bytes(b"\n".join(lines))


def long_word(letters, number=99):
    """A word of which a tokenizer has few pieces."""
    random = np.random.default_rng(number)
    return "".join(random.choice(list(letters), number))


def table(file):
    header, *rows = Path(file).read_text(encoding="utf-8").split("\n")[:-1]
    assert header.split("\t") == [
        "split",
        "corpus",
        "line",
        "reason",
        "source",
        "target",
    ]
    return [tuple(row.split("\t")) for row in rows]


def test_all_bad_lines_of_all_files_are_named_at_once(tmp_path, options):
    spoil(options.train[0].source, 5, 280)
    spoil(options.train[0].target, 17)
    spoil(options.valid.target, 2)
    with pytest.raises(UserErrors) as caught:
        prepare(options, tmp_path / "out")
    lines = caught.value.lines
    places = ["valid.de, line 2", "train.en, line 5", "train.de, line 17"]
    assert len(lines) == 4
    for line, place in zip(lines, [*places, "train.en, line 280"], strict=True):
        assert f"{place}: not UTF-8 (byte 1 of the line is 0xfc)." in line
    assert "--errors skip" in lines[-1] and "--errors" not in lines[0]
    assert names_beside(tmp_path / "out") == set()


def test_more_bad_lines_than_are_named_are_counted(tmp_path, options):
    spoil(options.train[0].source, *range(1, 301))
    spoil(options.train[0].target, *range(1, 8))
    with pytest.raises(UserErrors, match="297 more lines are not UTF-8") as e:
        prepare(options, tmp_path / "out")
    assert len(e.value.lines) == 11
    assert "train.en: 300, " in e.value.lines[-1]
    assert "train.de: 7)" in e.value.lines[-1]


def test_corpora_that_are_not_aligned_are_named_with_them(tmp_path, options):
    spoil(options.train[0].source, 5)
    for name in ("valid", "test"):
        with open(getattr(options, name).target, "ab") as file:
            file.write(b"mehr\n")
    with pytest.raises(UserErrors) as caught:
        prepare(options, tmp_path / "out")
    found = "\n".join(caught.value.lines)
    assert "valid.de with 12 lines" in found and "test.de with 8" in found
    assert "train.en, line 5" in found


def test_pairs_with_bad_lines_can_be_skipped(tmp_path, options, caplog):
    spoil(options.train[0].source, 5, 280)
    spoil(options.train[0].target, 5, 17)
    spoil(options.valid.target, 2)
    skipping = dataclasses.replace(options, errors="skip")
    with caplog.at_level(logging.WARNING):
        manifest = prepare(skipping, tmp_path / "out")
    pairs = toy_pairs(318)
    bad = [pairs[4], pairs[16], pairs[279]]
    expected = [pair for pair in pairs[:300] if pair not in bad]
    assert decoded(tmp_path / "out", "train") == expected
    assert decoded(tmp_path / "out", "valid") == [
        pairs[300],
        *pairs[302:311],
    ]
    counts = manifest["filters"]
    assert counts["train"]["encoding"] == 3 and counts["train"]["kept"] == 297
    assert counts["train"]["read"] == 300 and counts["valid"]["encoding"] == 1
    assert "3 encoding" in describe_manifest(manifest)
    assert "train.de, line 17: not UTF-8" in caplog.text
    assert "left out" in caplog.text
    text = (tmp_path / "out" / "valid.target.txt").read_text()
    assert text.splitlines() == [pairs[300][1], *(p[1] for p in pairs[302:311])]


def test_bad_bytes_can_be_replaced(tmp_path, options, caplog):
    spoil(options.train[0].source, 5)
    spoil(options.valid.target, 2)
    replacing = dataclasses.replace(options, errors="replace")
    with caplog.at_level(logging.WARNING):
        manifest = prepare(replacing, tmp_path / "out")
    pairs = toy_pairs(318)
    expected = ("\ufffd" + pairs[4][0], pairs[4][1])
    assert decoded(tmp_path / "out", "train")[4] == expected
    text = (tmp_path / "out" / "valid.target.txt").read_text(encoding="utf-8")
    assert text.splitlines()[1] == "\ufffd" + pairs[301][1]
    assert "encoding" not in manifest["filters"]["train"]
    assert "train.en, line 5: not UTF-8" in caplog.text
    assert "replaced by U+FFFD" in caplog.text


@pytest.mark.parametrize("errors", ["skip", "replace"])
def test_good_text_gives_the_same_data_with_each_way(tmp_path, options, errors):
    first = prepare(options, tmp_path / "strict")
    other = dataclasses.replace(options, errors=errors)
    assert prepare(other, tmp_path / errors)["splits"] == first["splits"]


def test_a_bad_line_of_a_heavier_corpus_is_reported_once(tmp_path, options):
    heavy = write_pairs(tmp_path, "heavy", toy_pairs(9))
    heavy = dataclasses.replace(heavy, weight=5.0)
    spoil(heavy.source, 3)
    options = dataclasses.replace(options, train=[*options.train, heavy])
    with pytest.raises(UserError, match="heavy.en, line 3") as caught:
        prepare(options, tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_every_pair_that_is_left_out_is_listed(tmp_path):
    lines = [
        ("a dog", "ein Hund"),
        ("a  dog ", "ein\u00a0Hund"),
        ("", "eine\tKatze"),
        ("Berlin Mitte", "Berlin Mitte"),
        ("a", "eine Katze"),
        ("one two three four five", "eins zwei"),
        ("a bad", "line"),
        ("gtdnaeozcurtdkgaieudnzhtorcnagdeutzinoad ta", "ein Wort"),
        ("a cat", "eine Katze"),
    ]
    train = write_pairs(tmp_path, "train", lines)
    spoil(train.target, 7)
    valid = write_pairs(tmp_path, "valid", [("x y", ""), ("a dog", "ein Hund")])
    options = PrepareOptions(
        train=[train],
        valid=valid,
        vocabulary_size=41,
        min_length=2,
        max_length=5,
        max_ratio=2.0,
        max_tokens=13,
        errors="skip",
    )
    file = tmp_path / "rejected.tsv"
    manifest = prepare(options, tmp_path / "out", rejected_file=file)
    rows = table(file)
    assert rows == [
        ("valid", "valid", "1", "empty", "x y", ""),
        ("train", "train", "3", "empty", "", "eine Katze"),
        ("train", "train", "4", "identical", *lines[3]),
        ("train", "train", "5", "length", *lines[4]),
        ("train", "train", "6", "ratio", *lines[5]),
        ("train", "train", "7", "encoding", "a bad", "\\xfcline"),
        ("train", "train", "2", "duplicate", "a  dog ", "ein\u00a0Hund"),
        ("train", "train", "8", "length", *lines[7]),
    ]
    for split, counts in manifest["filters"].items():
        listed = sum(row[0] == split for row in rows)
        assert listed == counts["read"] - counts["kept"]
    assert manifest["filters"]["train"]["length"] == 2


def test_rejected_pairs_are_listed_as_they_are_given(tmp_path):
    """Filters read both sides in NFKC, and letters as words in Chinese."""
    pairs = [(f"page {number} .", f"第{number}页…") for number in range(60)]
    lines = [
        *pairs,
        ("ｐａｇｅ　7 .", "第７页..."),  # as the filters read it, the 8th pair
        ("a dog", "一只狗在№５睡觉，" * 3),
        ("one\u00ad page .", "…"),
        ("a cat", "我" + long_word("0123456789")),  # two words
    ]
    train = write_pairs(tmp_path, "train", lines)
    options = PrepareOptions(
        train=[train], vocabulary_size=60, max_tokens=30, joint=False
    )
    file = tmp_path / "rejected.tsv"
    prepare(options, tmp_path / "out", rejected_file=file)
    assert table(file) == [
        ("train", "train", "62", "ratio", *lines[61]),
        ("train", "train", "61", "duplicate", *lines[60]),
        ("train", "train", "64", "length", *lines[63]),
    ]


def test_the_bad_lines_of_a_run_that_fails_are_listed(tmp_path, options):
    spoil(options.train[0].source, *range(1, 41))
    file = tmp_path / "rejected.tsv"
    with pytest.raises(UserErrors):
        prepare(options, tmp_path / "out", rejected_file=file)
    assert [row[2:4] for row in table(file)] == [
        (str(number), "encoding") for number in range(1, 41)
    ]


def test_lines_left_out_after_others_keep_their_numbers(tmp_path, options):
    """Numbers are those of the files, over corpora and held-out pairs."""
    second = [
        ("", "leer"),
        *toy_pairs(60, seed=8),
        ("a dog", long_word("Hundsiet")),
    ]
    options = PrepareOptions(
        train=[*options.train, write_pairs(tmp_path, "second", second)],
        vocabulary_size=97,
        valid_pairs=20,
        test_pairs=20,
        max_tokens=40,
        seed=1,
    )
    file = tmp_path / "rejected.tsv"
    prepare(options, tmp_path / "out", rejected_file=file)
    assert [row[1:4] for row in table(file)] == [
        ("second", "1", "empty"),
        ("second", "62", "length"),
    ]


def test_the_list_must_be_outside_the_prepared_folder(tmp_path, options):
    file = tmp_path / "out" / "rejected.tsv"
    with pytest.raises(UserError, match="outside the prepared folder"):
        prepare(options, tmp_path / "out", rejected_file=file)
    nowhere = tmp_path / "nowhere" / "rejected.tsv"
    with pytest.raises(UserError, match="rejected.tsv: cannot be written"):
        prepare(options, tmp_path / "out", rejected_file=nowhere)
    assert names_beside(tmp_path / "out") == set()


def test_a_list_of_a_prepared_folder_is_not_forgotten(
    tmp_path,
    options,
    caplog,
):
    prepare(options, tmp_path / "out")
    file = tmp_path / "rejected.tsv"
    with caplog.at_level(logging.WARNING):
        prepare(options, tmp_path / "out", rejected_file=file)
    assert "rejected.tsv: not written" in caplog.text and not file.exists()


@pytest.fixture
def short_limit(monkeypatch):
    for module in (pair_encoding, folder_writer):
        monkeypatch.setattr(module, "MAX_PAIR_LENGTH", 70)


def test_a_held_out_line_too_long_for_the_index_is_named(
    tmp_path,
    options,
    short_limit,
):
    pairs = toy_pairs(318)
    long = " ".join(f"{number} xyz" for number in range(90))
    options = dataclasses.replace(
        options,
        valid=write_pairs(
            tmp_path, "valid", [pairs[300], ("", "leer"), (long, "kurz")]
        ),
        test=write_pairs(tmp_path, "test", [pairs[311], ("short", long)]),
    )
    with pytest.raises(UserErrors) as caught:
        prepare(options, tmp_path / "out")
    first, second = caught.value.lines
    assert "valid.en, line 3: must have at most 70 pieces" in first
    assert "test.de, line 2: must have at most 70 pieces" in second
    assert names_beside(tmp_path / "out") == set()


def test_a_drawn_line_too_long_for_the_index_is_named(
    tmp_path,
    options,
    short_limit,
):
    long = long_word("dogcatbirdh", 140)
    pairs = [*toy_pairs(40, seed=5), (long, "kurz"), *toy_pairs(9, seed=6)]
    options = PrepareOptions(
        train=[options.train[0], write_pairs(tmp_path, "second", pairs)],
        vocabulary_size=97,
        valid_pairs=345,
        max_tokens=70,
    )
    with pytest.raises(UserError, match="second.en, line 41: must have at"):
        prepare(options, tmp_path / "out")


def test_a_test_line_of_many_thousand_pieces_is_named(tmp_path, options):
    test = write_pairs(
        tmp_path, "test", [("a dog", "Hund"), ("x " * 84_000,) * 2]
    )
    options = dataclasses.replace(options, test=test)
    with pytest.raises(
        UserError, match="test.en, line 2: must have at most 65"
    ):
        prepare(options, tmp_path / "out")


def test_one_side_only_is_bad(tmp_path):
    """The other side of a skipped pair goes with it."""
    pairs = toy_pairs(120)
    corpus = write_pairs(tmp_path, "train", pairs)
    spoil(corpus.target, 1, 120)
    options = PrepareOptions(
        train=[CorpusOptions(corpus.source, corpus.target)],
        vocabulary_size=90,
        errors="skip",
    )
    prepare(options, tmp_path / "out")
    assert decoded(tmp_path / "out", "train") == pairs[1:119]
