"""What must be true of corpora with tags.

* a tag is one token before each source of its corpus, held-out text included
* filters, leakage and the table of rejected pairs have the text without it
* the same pair with another tag is another pair
* a given tokenizer must have the tag as a symbol
"""

import dataclasses
import logging

import numpy as np
import pytest
from toy_corpus import SIDES, contents, decoded, prepare, toy_pairs, write_pairs

from keras_deepnmt import cli
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.manifest import describe_manifest
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.alignment_filter import AlignmentFilter
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError

PAIRS = toy_pairs(211)
GERMAN, OTHER = PAIRS[:90], [(s, f"{t} !") for s, t in PAIRS[90:170]]


def tagged(folder, name, pairs, tag, **changes):
    corpus = write_pairs(folder, name, pairs)
    return dataclasses.replace(corpus, name=name, tag=tag, **changes)


def two_corpora(folder, tags=("<2de>", "<2xx>")):
    return [
        tagged(folder, name, pairs, tag)
        for name, pairs, tag in zip(
            ("german", "other"), (GERMAN, OTHER), tags, strict=True
        )
    ]


def options(train, **changes):
    return PrepareOptions(train=train, **{"vocabulary_size": 97, **changes})


def sources(folder, split):
    store = PairStore(folder, split)
    return [pair[0] for pair in store.read(range(len(store)))]


def with_tag(pairs, tag):
    return [(f"{tag} {source}", target) for source, target in pairs]


@pytest.mark.parametrize(
    ("model_type", "joint"), [("bpe", True), ("bpe", False), ("unigram", True)]
)
def test_each_source_begins_with_its_tag(tmp_path, model_type, joint):
    valid = tagged(tmp_path, "valid", PAIRS[170:180], "<2xx>")
    manifest = prepare(
        options(
            two_corpora(tmp_path),
            valid=valid,
            model_type=model_type,
            joint=joint,
            vocabulary_size=60,
        ),
        tmp_path / "out",
    )
    folder = tmp_path / "out"
    tokenizers = [
        Tokenizer(folder / "tokenizer" / f"{side}.model") for side in SIDES
    ]
    assert tokenizers[0].user_defined_symbols == ["<2de>", "<2xx>"]
    expected = ["<2de>", "<2xx>"] if joint else []
    assert tokenizers[1].user_defined_symbols == expected
    rows = sources(folder, "train")
    for entry, pairs in zip(
        manifest["corpora"][1:], (GERMAN, OTHER), strict=True
    ):
        for row, (text, _) in zip(
            rows[slice(*entry["rows"])], pairs, strict=True
        ):
            # SentencePiece puts a token that is only a space before a symbol.
            assert tokenizers[0].pieces(row[:2]) == ["▁", entry["tag"]]
            np.testing.assert_array_equal(
                row[2:], tokenizers[0].encode([text])[0]
            )
    assert decoded(folder, "train") == [
        *with_tag(GERMAN, "<2de>"),
        *with_tag(OTHER, "<2xx>"),
    ]
    texts = PreparedData(folder).texts("valid")
    tagged_valid = with_tag(PAIRS[170:180], "<2xx>")
    assert list(zip(*texts, strict=True)) == tagged_valid
    assert decoded(folder, "valid") == tagged_valid
    assert "train corpus german: 90 pairs with the tag <2de>" in (
        describe_manifest(manifest)
    )


def test_drawn_pairs_keep_the_tag_of_their_corpus(tmp_path):
    folder = tmp_path / "out"
    prepare(
        options(two_corpora(tmp_path), valid_pairs=23, test_pairs=19), folder
    )
    everything = {*with_tag(GERMAN, "<2de>"), *with_tag(OTHER, "<2xx>")}
    found = set()
    for split in ("valid", "test"):
        pairs = decoded(folder, split)
        texts = PreparedData(folder).texts(split)
        assert list(zip(*texts, strict=True)) == pairs
        found |= set(pairs)
    assert len(found) == 42 and {s.split()[0] for s, _ in found} == {
        *("<2de>", "<2xx>")
    }
    assert found | set(decoded(folder, "train")) == everything


def test_a_corpus_without_a_tag_stays_as_it_is(tmp_path):
    """The text of the others, the draw and the filters do not change."""
    plain, one = tmp_path / "plain", tmp_path / "one"
    prepare(options(two_corpora(tmp_path, (None, None))), plain)
    prepare(options(two_corpora(tmp_path, (None, "<2xx>"))), one)
    before, after = decoded(plain, "train"), decoded(one, "train")
    assert after[:90] == before[:90]
    assert after[90:] == with_tag(before[90:], "<2xx>")


def test_filters_read_the_text_without_the_tag(tmp_path):
    pairs = [
        *GERMAN,
        ("one two three", "one two three"),  # identical
        ("one", "eins zwei"),  # one word per two
        ("", "leer"),
        GERMAN[0],
    ]
    rejected = tmp_path / "rejected.tsv"
    manifest = prepare(
        options(
            [tagged(tmp_path, "a", pairs, "<2de>")], max_ratio=1.9, min_length=1
        ),
        tmp_path / "out",
        rejected_file=rejected,
    )
    counts = manifest["filters"]["train"]
    names = ("identical", "ratio", "empty", "duplicate")
    assert [counts[name] for name in names] == [1, 1, 1, 1]
    rows = [line.split("\t") for line in rejected.read_text().splitlines()[1:]]
    assert [tuple(row[4:]) for row in rows] == [*pairs[90:93], pairs[93]]


def test_the_number_of_tokens_counts_the_tag(tmp_path):
    pairs = [(source, "gut") for source, _ in GERMAN]
    train = [tagged(tmp_path, "a", pairs, "<2de>")]
    plain = options(train, vocabulary_size=50)
    prepare(plain, tmp_path / "all")
    lengths = [len(row) for row in sources(tmp_path / "all", "train")]
    manifest = prepare(
        dataclasses.replace(plain, max_tokens=max(lengths) - 1),
        tmp_path / "shorter",
    )
    left_out = manifest["filters"]["train"]["length"]
    assert left_out == lengths.count(max(lengths)) > 0


def test_the_same_pair_with_another_tag_is_another_pair(tmp_path):
    train = [
        tagged(tmp_path, "light", PAIRS[:9], "<a>"),
        tagged(tmp_path, "heavy", PAIRS[:5], "<b>", weight=3.0),
        tagged(tmp_path, "same", PAIRS[2:6], "<a>", weight=3.0),
        tagged(tmp_path, "none", PAIRS[:4], None),
    ]
    manifest = prepare(options(train, vocabulary_size=70), tmp_path / "out")
    pairs = {c["name"]: c["pairs"] for c in manifest["corpora"]}
    assert pairs == {"light": 5, "heavy": 5, "same": 4, "none": 4}


def test_held_out_text_is_looked_for_without_its_tag(tmp_path, caplog):
    valid = tagged(tmp_path, "valid", PAIRS[80:95], "<2xx>")
    manifest = prepare(
        options(two_corpora(tmp_path), valid=valid), tmp_path / "out"
    )
    assert manifest["leakage"]["train_valid"] == 10  # 5 have other targets
    assert manifest["leakage"]["train_valid_source"] == 15


def test_tags_in_lines_are_not_regarded_either(tmp_path):
    pairs = [*with_tag(PAIRS[85:90], "<2xx>"), *with_tag(PAIRS[180:], "<2de>")]
    manifest = prepare(
        options(
            two_corpora(tmp_path), valid=tagged(tmp_path, "v", pairs, None)
        ),
        tmp_path / "out",
    )
    assert manifest["leakage"]["train_valid"] == 5


def test_scores_of_alignments_are_those_of_the_text_alone(
    tmp_path, monkeypatch
):
    wrong = [(PAIRS[n][0], PAIRS[n + 40][1]) for n in range(9)]
    seen = []
    misaligned = AlignmentFilter.misaligned

    def look(self, rows, source_ids, target_ids):
        source_ids = list(source_ids)
        seen.extend(source_ids)
        return misaligned(self, rows, source_ids, target_ids)

    monkeypatch.setattr(AlignmentFilter, "misaligned", look)
    train = [tagged(tmp_path, "a", [*GERMAN, *wrong], "<2de>")]
    folder = tmp_path / "out"
    prepare(
        options(train, min_alignment_score=0.0, drop_duplicates=False), folder
    )
    tokenizer = Tokenizer(folder / "tokenizer" / "source.model")
    texts = [source for source, _ in [*GERMAN, *wrong]]
    assert [row.tolist() for row in seen] == [
        row.tolist() for row in tokenizer.encode(texts)
    ]


def test_another_tag_is_another_corpus(tmp_path):
    folder = tmp_path / "out"
    train = two_corpora(tmp_path)
    prepare(options(train), folder)
    before = contents(folder)
    prepare(options(train), folder)
    assert contents(folder) == before
    train[1] = dataclasses.replace(train[1], tag="<2yy>")
    message = "prepared already, but with tag=<2xx> for .*, not <2yy>"
    with pytest.raises(UserError, match=message):
        prepare(options(train), folder)


def test_a_tag_that_is_a_mask_symbol_is_refused(tmp_path):
    train = two_corpora(tmp_path, ("<2de>", "⟪2⟫"))
    with pytest.raises(UserError, match="Received: tag=⟪2⟫, mask_symbols=2"):
        options(train, mask_symbols=2)
    assert options(train, mask_symbols=1).tags() == ["<2de>", "⟪2⟫"]


@pytest.mark.parametrize("tag", ["", "2 de", "\t", "<2de>\u200b", "</s>", "▁x"])
def test_a_text_that_cannot_be_a_tag_is_refused(tag):
    with pytest.raises(UserError, match="`tag` must be a text without white"):
        CorpusOptions("a", "b", tag=tag)


def test_a_given_tokenizer_must_have_the_tag(tmp_path):
    train = two_corpora(tmp_path)
    prepare(options(train), tmp_path / "first")
    given = str(tmp_path / "first" / "tokenizer" / "source.model")
    manifest = prepare(
        options(train, tokenizer_source=given), tmp_path / "again"
    )
    assert manifest["splits"]["train"]["source_unknown_tokens"] == 0
    other = [train[0], dataclasses.replace(train[1], tag="<2fr>")]
    with pytest.raises(UserError) as error:
        prepare(options(other, tokenizer_source=given), tmp_path / "no")
    message = str(error.value)
    assert "<2fr>" in message and given in message
    assert "<2de>, <2xx>" in message and "Leave out" in message
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("tag", "warned"),
    [("<2de>", None), ("<2yy>", "is that of no training"), (None, "has none")],
)
def test_a_held_out_corpus_with_other_tags_is_named(
    tmp_path, caplog, tag, warned
):
    valid = tagged(tmp_path, "valid", PAIRS[170:175], tag)
    with caplog.at_level(logging.WARNING):
        prepare(options(two_corpora(tmp_path), valid=valid), tmp_path / "out")
    if warned is None:
        assert "tag" not in caplog.text
    else:
        assert warned in caplog.text


@pytest.mark.parametrize(
    ("tags", "symbols", "warned"),
    [
        (("<a>", "<a>"), (), "translate en into de and fr with the tag <a>"),
        ((None, None), (), "into de and fr with the tag none"),
        ((None, "<a>"), (), None),
        # Lines have tags of their own.
        ((None, None), ("<b>",), None),
    ],
)
def test_languages_with_one_tag_are_named(
    tmp_path, caplog, tags, symbols, warned
):
    train = [
        dataclasses.replace(one, tag=tag, target_language=language)
        for one, tag, language in zip(
            two_corpora(tmp_path), tags, ("de", "fr"), strict=True
        )
    ]
    others = {"source_language": "en", "user_defined_symbols": list(symbols)}
    with caplog.at_level(logging.WARNING):
        prepare(options(train, **others), tmp_path / "out")
    assert (warned or "") in caplog.text
    assert ("can be told which" in caplog.text) == (warned is not None)


def test_lines_with_tags_of_their_own_need_none(tmp_path, caplog):
    pairs = with_tag(PAIRS[170:175], "<2de>")
    valid = tagged(tmp_path, "valid", pairs, None)
    with caplog.at_level(logging.WARNING):
        prepare(options(two_corpora(tmp_path), valid=valid), tmp_path / "out")
    assert "tag" not in caplog.text
    assert decoded(tmp_path / "out", "valid") == pairs


def test_a_corpus_of_which_no_pair_is_left_is_judged_by_no_line(
    tmp_path, caplog
):
    empty = tagged(tmp_path, "empty", [("", "")] * 3, None)
    valid = [empty, tagged(tmp_path, "valid", PAIRS[170:175], "<2de>"), empty]
    with caplog.at_level(logging.WARNING):
        prepare(options(two_corpora(tmp_path), valid=valid), tmp_path / "out")
    assert "has none" not in caplog.text


def test_the_command_takes_a_tag_for_each_corpus(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = two_corpora(tmp_path)
    write_pairs(tmp_path, "valid", PAIRS[170:175])
    words = ["prepare", "--vocabulary-size", "97", "--output", "out"]
    for side in ("source", "target"):
        words += [f"--{side}", *(getattr(corpus, side) for corpus in train)]
    words += ["--valid-source", "valid.en", "--valid-target", "valid.de"]
    refused = cli.main([*words, "--tag", "<2de>"])
    assert refused == 2
    assert "`--tag` must have one text per corpus" in capfd.readouterr().err
    done = cli.main([*words, "--tag", "<2de>", "", "--valid-tag", "<2de>"])
    shown = capfd.readouterr().err
    assert done == 0, shown
    manifest = PreparedData("out").manifest
    tags = {c["name"]: c["tag"] for c in manifest["corpora"]}
    assert tags == {"valid": "<2de>", "german": "<2de>", "other": None}
    # It is shown again when nothing is left to do.
    again = cli.main([*words, "--tag", "<2de>", "", "--valid-tag", "<2de>"])
    assert again == 0 and "<2de>" in capfd.readouterr().err
    rows = [line for line in shown.splitlines() if "<2de>" in line]
    assert any("german" in row and "90" in row for row in rows)
    drawn = ["--valid-pairs", "7", "--test-pairs", "3"]
    refused = cli.main([*words[:-4], *drawn, "--valid-tag", "<2de>"])
    assert refused == 2
    assert "`--valid-tag` needs `--valid-source`" in capfd.readouterr().err


@pytest.mark.parametrize("joint", [True, False])
def test_tags_on_the_target_side_begin_targets(tmp_path, joint):
    # Lines of a corpus without a tag may have their own.
    lines = [(f"{tag} {s}", t) for tag in ("<2de>", "<2xx>") for s, t in PAIRS]
    own = write_pairs(tmp_path, "own", lines[170:180])
    valid = tagged(tmp_path, "valid", PAIRS[180:190], "<2xx>")
    manifest = prepare(
        options(
            two_corpora(tmp_path),
            valid=[valid, own],
            tag_side="target",
            joint=joint,
            vocabulary_size=70,
            min_alignment_score=-99.0,
        ),
        tmp_path / "out",
    )
    data = PreparedData(tmp_path / "out")
    symbols = ["<2de>", "<2xx>"]
    assert data.target_tokenizer.user_defined_symbols == symbols
    assert data.source_tokenizer.user_defined_symbols == symbols * joint
    assert decoded(tmp_path / "out", "train") == [
        (source, f"{tag} {target}")
        for pairs, tag in ((GERMAN, "<2de>"), (OTHER, "<2xx>"))
        for source, target in pairs
    ]
    expected = [(s, f"<2xx> {t}") for s, t in PAIRS[180:190]]
    expected += [
        (s.removeprefix("<2de> "), f"<2de> {t}") for s, t in lines[170:180]
    ]
    assert decoded(tmp_path / "out", "valid") == expected
    # In texts they stand before the source, as with the other side.
    sources, references = data.texts("valid")
    assert [s.split()[0] for s in sources] == ["<2xx>"] * 10 + ["<2de>"] * 10
    assert references == [t for _, t in [*PAIRS[180:190], *lines[170:180]]]
    assert manifest["options"]["tag_side"] == "target"


def test_a_folder_with_tags_on_the_other_side_is_not_used(tmp_path):
    train = two_corpora(tmp_path)
    prepare(options(train), tmp_path / "out")
    with pytest.raises(UserError, match="with tag_side=source, not target"):
        prepare(options(train, tag_side="target"), tmp_path / "out")


def test_a_given_target_tokenizer_must_have_tags_of_its_side(tmp_path):
    prepare(options(two_corpora(tmp_path), joint=False), tmp_path / "out")
    folder = tmp_path / "out" / "tokenizer"
    given = {
        f"tokenizer_{side}": str(folder / f"{side}.model") for side in SIDES
    }
    with pytest.raises(UserError, match="symbol of the target tokenizer"):
        prepare(
            options(
                two_corpora(tmp_path), joint=False, tag_side="target", **given
            ),
            tmp_path / "other",
        )
