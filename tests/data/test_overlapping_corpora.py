"""What must be true of corpora that have pairs in common.

A pair counts for the corpus with the largest weight, whatever their order; a
corpus that loses all its pairs is named in a warning.
"""

import dataclasses
import gzip
import logging
from pathlib import Path

import pytest
from toy_corpus import contents, decoded, prepare, toy_pairs, write_pairs

from keras_deepnmt.data.manifest import describe_manifest, row_weights
from keras_deepnmt.data.preparation.options import PrepareOptions

PAIRS = toy_pairs(211)
DOMAIN = PAIRS[101:118]


def corpora(folder, general_first, weights=(1.0, 10.0), compress=bytes):
    both = [
        dataclasses.replace(
            write_pairs(folder, name, pairs, compress), name=name, weight=weight
        )
        for name, pairs, weight in zip(
            ("general", "domain"), (PAIRS, DOMAIN), weights, strict=True
        )
    ]
    return both if general_first else both[::-1]


def options(train, **changes):
    return PrepareOptions(train=train, vocabulary_size=97, **changes)


def rows_of(manifest):
    return {c["name"]: c["rows"] for c in manifest["corpora"]}


def pairs_of(folder, rows):
    return decoded(folder, "train")[slice(*rows)]


@pytest.mark.parametrize("general_first", [True, False])
def test_a_pair_counts_for_the_heaviest_corpus(tmp_path, general_first):
    train = corpora(tmp_path, general_first)
    output = tmp_path / "out"
    manifest = prepare(options(train), output)
    rows = rows_of(manifest)
    assert list(rows) == [corpus.name for corpus in train]
    assert pairs_of(output, rows["domain"]) == DOMAIN
    rest = [pair for pair in PAIRS if pair not in DOMAIN]
    assert pairs_of(output, rows["general"]) == rest
    assert row_weights(manifest).sum() == len(rest) + 10 * len(DOMAIN)
    assert manifest["filters"]["train"]["duplicate"] == len(DOMAIN)
    assert manifest["filters"]["train"]["read"] == len(PAIRS) + len(DOMAIN)


def test_the_heaviest_of_three_corpora_gets_the_pair(tmp_path):
    names = ("light", "heavy", "middle")
    train = [
        dataclasses.replace(
            write_pairs(
                tmp_path, name, [*PAIRS[:7], *PAIRS[start : start + 5]]
            ),
            name=name,
            weight=weight,
        )
        for name, start, weight in zip(
            names, (20, 30, 40), (0.5, 3.0, 2.0), strict=True
        )
    ]
    manifest = prepare(options(train), tmp_path / "out")
    pairs = {c["name"]: c["pairs"] for c in manifest["corpora"]}
    assert pairs == {"light": 5, "heavy": 12, "middle": 5}


@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.0, 1.0)])
def test_the_first_of_equal_and_lighter_corpora_gets_the_pair(
    tmp_path, weights, caplog
):
    train = corpora(tmp_path, True, weights)
    with caplog.at_level(logging.WARNING):
        manifest = prepare(options(train), tmp_path / "out")
    assert rows_of(manifest) == {"general": [0, 211], "domain": [211, 211]}
    assert "corpus domain" in caplog.text and "17 duplicate" in caplog.text
    assert "corpus domain: no pair is left of 17" in describe_manifest(manifest)
    assert len(caplog.records) == 1


def test_a_corpus_with_pairs_left_is_not_warned_about(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        prepare(options(corpora(tmp_path, True)), tmp_path / "out")
    assert "no pair left" not in caplog.text


def test_a_corpus_emptied_in_the_second_pass_is_warned_about(tmp_path, caplog):
    long = [("z" * 90, "q" * 90)]
    train = [
        write_pairs(tmp_path, "train", PAIRS),
        write_pairs(tmp_path, "long", long),
    ]
    with caplog.at_level(logging.WARNING):
        prepare(options(train, max_tokens=39), tmp_path / "out")
    assert "corpus long" in caplog.text and "1 length" in caplog.text


def test_what_a_corpus_lost_that_is_given_twice_is_counted_for_each(
    tmp_path, caplog
):
    pairs = [("the dog " * 40, "der Hund " * 40)]
    long = write_pairs(tmp_path, "long", pairs)
    train = [write_pairs(tmp_path, "train", PAIRS), long, long]
    given = options(train, max_tokens=39, drop_duplicates=False)
    with caplog.at_level(logging.WARNING):
        prepare(given, tmp_path / "out")
    assert caplog.text.count("has no pair left of 1 (1 length)") == 2


def test_weights_of_corpora_without_common_pairs_change_no_data(tmp_path):
    """The order of rows and what is drawn stay as without the weights."""
    folders = []
    for weight in (1.0, 4.0):
        train = [
            write_pairs(tmp_path, "a", PAIRS[:100]),
            dataclasses.replace(
                write_pairs(tmp_path, "b", PAIRS[100:]), weight=weight
            ),
        ]
        folders.append(tmp_path / f"out{weight}")
        prepare(options(train, valid_pairs=13, test_pairs=7), folders[-1])
    plain, weighted = map(contents, folders)
    del plain["manifest.json"], weighted["manifest.json"]
    assert plain == weighted


def test_equal_pairs_stay_if_duplicates_are_kept(tmp_path):
    train = corpora(tmp_path, True)
    manifest = prepare(options(train, drop_duplicates=False), tmp_path / "out")
    assert rows_of(manifest) == {"general": [0, 211], "domain": [211, 228]}


def test_a_heavier_corpus_may_be_gzipped_and_have_empty_lines(tmp_path):
    train = corpora(tmp_path, True, compress=gzip.compress)
    path = Path(train[1].source)
    lines = gzip.decompress(path.read_bytes()).split(b"\n")
    lines[3] = b""
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    manifest = prepare(options(train), tmp_path / "out")
    assert rows_of(manifest) == {"general": [0, 195], "domain": [195, 211]}
