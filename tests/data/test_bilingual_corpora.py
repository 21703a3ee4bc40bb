"""Training text may be one file with both sides.

* its pairs are those of two text files with the same sentences
* what has no pair is counted and said, and what is wrong is refused in a line
"""

import json
import logging
import lzma
import re

import pytest
from toy_corpus import prepare, toy_pairs, write_pairs

from keras_deepnmt.data.bilingual_files.pair_lines import (
    PairLines,
    content_sha256,
)
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.known_corpora.finding import find_corpus_files
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.errors import UserError

LANGUAGES = ("en", "de")
COLUMNS = {"source_column": "en", "target_column": "de"}
PAIRS = toy_pairs(300)
XLIFF = {
    "1.2": (
        'xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"',
        '<file original="a" source-language="en" target-language="de-DE" '
        'datatype="x"><body>',
        "<trans-unit id='{0}'><source>{1}</source>{2}</trans-unit>",
        "</body></file>",
    ),
    "2.1": (
        'xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.1" '
        'srcLang="en" trgLang="de"',
        '<file id="f">',
        "<unit id='u{0}'><segment><source>{1}</source>{2}</segment></unit>",
        "</file>",
    ),
}


def with_codes(text):
    """The text, with markup that is no text."""
    return re.sub(r"^(\w+) ", r"<ph id='1'>no text</ph>\n \1 ", text)


def xliff(version, pairs):
    attributes, before, unit, after = XLIFF[version]
    units = [
        unit.format(
            number,
            with_codes(source),
            "" if target is None else f"<target>{with_codes(target)}</target>",
        )
        for number, (source, target) in enumerate(pairs)
    ]
    return f"<xliff {attributes}>{before}{''.join(units)}{after}</xliff>"


def tmx(pairs):
    units = []
    for source, target in pairs:
        sides = [("EN-gb", source), ("fr", "un"), ("de", target)]
        units.append(
            "".join(
                f'<tuv xml:lang="{code}"><seg>{with_codes(text)}</seg></tuv>'
                for code, text in sides
                if text is not None
            )
        )
    inside = "".join(f"<tu>{unit}</tu>" for unit in units)
    return f"<tmx version='1.4'><header/><body>{inside}</body></tmx>"


def table(pairs):
    return "".join(
        f"{left}\t{right}\tx\n" for left, right in [("en", "de"), *pairs]
    )


def json_lines(pairs):
    return "".join(
        json.dumps({"translation": {"en": source, "de": target}}) + "\n"
        for source, target in pairs
    )


FILES = {
    "a.tmx": (tmx, {}),
    "a.xlf": (lambda pairs: xliff("1.2", pairs), {}),
    "b.xlf": (lambda pairs: xliff("2.1", pairs), {}),
    "a.tsv": (table, COLUMNS),
    "a.jsonl": (
        json_lines,
        {
            "source_column": "translation.en",
            "target_column": "translation.de",
        },
    ),
}


def one_file(folder, name, pairs, compress=str.encode):
    write, columns = FILES[name]
    path = folder / name
    path.write_bytes(compress(write(pairs)))
    return CorpusOptions(file=str(path), **columns)


def found(corpus):
    return find_corpus_files(corpus, "train", languages=LANGUAGES)


@pytest.mark.parametrize("name", FILES)
def test_pairs_are_those_of_two_text_files(tmp_path, name):
    text = found(write_pairs(tmp_path, "train", PAIRS))
    corpus = found(one_file(tmp_path, name, PAIRS))
    assert [sides for _, *sides in PairLines(corpus)] == [
        sides for _, *sides in PairLines(text)
    ]
    assert content_sha256(corpus) == content_sha256(text)


def test_a_line_of_a_file_is_the_line_of_its_pair(tmp_path):
    lines = PairLines(found(one_file(tmp_path, "a.tsv", PAIRS[:2])))
    assert [line for line, *_ in lines] == [2, 3]


@pytest.mark.parametrize(
    ("name", "reason"), [("a.tmx", "without de"), ("a.xlf", "without a transl")]
)
def test_entries_without_a_pair_are_counted(tmp_path, name, reason):
    pairs = [*PAIRS[:3], ("a dog", None), ("a cat", None)]
    lines = PairLines(found(one_file(tmp_path, name, pairs)))
    assert len(list(lines)) == 3
    ((said, count),) = lines.skipped.items()
    assert said.startswith(reason) and count == 2


def test_a_prepared_folder_is_that_of_the_text_files(tmp_path, caplog):
    corpus = one_file(
        tmp_path,
        "a.tmx",
        [*PAIRS, ("a dog", None)],
        lambda text: lzma.compress(text.encode()),
    )
    options = {
        "vocabulary_size": 60,
        "source_language": "en",
        "target_language": "de",
    }
    with caplog.at_level(logging.WARNING):
        manifest = prepare(
            PrepareOptions(train=[corpus], **options), tmp_path / "one"
        )
    assert "a.tmx: 1 of its entries are no pairs (1 without de)." in caplog.text
    assert manifest["corpora"][0]["skipped"] == {"without de": 1}
    text = write_pairs(tmp_path, "a", PAIRS)
    # So it is as if it was prepared from the text.
    again = prepare(PrepareOptions(train=[text], **options), tmp_path / "one")
    assert again["files"] == manifest["files"]


WRONG = [
    ({"source": "a", "file": "b"}, "or a `file` with both sides"),
    ({"source": "a", "target": "b", "file": "c"}, "or a `file` with both"),
    ({"name": "a", "source_column": "de"}, "`source_column` needs a `file`"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_a_corpus_is_one_thing(given, message):
    with pytest.raises(UserError, match=message):
        CorpusOptions(**given)


@pytest.mark.parametrize(
    ("name", "changes", "languages", "message"),
    [
        ("a.tmx", {}, (None, "de"), "does not say the source language"),
        ("a.tmx", {}, ("en", None), "Give `--target-language CODE`"),
        ("a.tmx", {}, ("it", "de"), "has no text in it. Its languages: "),
        ("a.xlf", {}, ("en", "it"), "target language is de-DE, but it is"),
        ("a.tsv", {"target_column": "dee"}, LANGUAGES, 'Did you mean "de"'),
        ("a.tsv", {"target_column": None}, LANGUAGES, "`--target-column`"),
        ("a.tmx", {"source_column": "en"}, LANGUAGES, "a.tmx, which is TMX. L"),
        ("b.xlf", {"target_column": "d"}, LANGUAGES, "`target_column` needs a"),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(
    tmp_path, name, changes, languages, message
):
    corpus = one_file(tmp_path, name, PAIRS[:20])
    columns = {**FILES[name][1], **changes}
    options = PrepareOptions(
        train=[CorpusOptions(file=corpus.file, **columns)],
        source_language=languages[0],
        target_language=languages[1],
    )
    with pytest.raises(UserError, match=message) as caught:
        prepare(options, tmp_path / "below" / "out")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("below/*"))


def test_a_plain_text_is_not_one_file_with_both_sides(tmp_path):
    (tmp_path / "a.txt").write_text("a dog\n")
    with pytest.raises(UserError, match="must be XLIFF, TMX, or a table"):
        found(CorpusOptions(file=str(tmp_path / "a.txt")))
