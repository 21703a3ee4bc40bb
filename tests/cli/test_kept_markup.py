"""`--keep-markup` and `--split-sentences` print what the function gives."""

import re

import pytest

from keras_deepnmt import Translator
from keras_deepnmt.documents import SentenceSplitter, translate_segments

LINES = [
    "1 <b>2</b> 3",
    "",
    "4 4 {name} 7",
    "1 2 3",
    "5 6. 7 8.  9",
    "<i>5 6. {x}</i> 7",
]


@pytest.fixture
def source(write_file):
    return write_file("source", "".join(f"{line}\n" for line in LINES))


@pytest.mark.thorough
def test_lines_are_those_of_the_function(deepnmt, digits, source):
    words = ["translate", digits / "run", "--input", source, "--no-compile"]
    done = deepnmt(*words, "--keep-markup", "-q")
    assert done.code == 0, done.err
    translator = Translator.load(digits / "run", compiled=False)
    lines = done.out.split("\n")[:-1]
    assert lines == translate_segments(translator, LINES)
    for tag in ("<b>", "</b>"):
        assert lines[0].count(tag) == 1
    assert lines[2].count("{name}") == 1
    plain = deepnmt(*words, "-q").out.split("\n")
    assert lines[1] == plain[1] and lines[3] == plain[3]


@pytest.mark.thorough
def test_sentences_are_translated_by_themselves(deepnmt, digits, source):
    pytest.importorskip("sentencex", reason="needs the extra [sentences]")
    words = ["translate", digits / "run", "--input", source, "--no-compile"]
    words += ["--split-sentences", "--source-language", "de", "-q"]
    translator = Translator.load(digits / "run", compiled=False)
    for options, keep_markup in (([], False), (["--keep-markup"], True)):
        done = deepnmt(*words, *options)
        assert done.code == 0, done.err
        assert done.out.split("\n")[:-1] == translate_segments(
            translator,
            LINES,
            keep_markup=keep_markup,
            splitter=SentenceSplitter("de"),
        )


@pytest.mark.thorough(each_commit=True)
def test_a_warning_names_the_line_of_a_sentence(deepnmt, digits, write_file):
    pytest.importorskip("sentencex", reason="needs the extra [sentences]")
    source = write_file("two", "Eins zwei. Drei vier.\n1 2\n")
    done = deepnmt(
        *("translate", digits / "run", "--input", source, "--no-compile"),
        *("--split-sentences", "--source-language", "de"),
        *("--max-length-ratio", "0", "--max-extra-tokens", "2"),
    )
    assert done.code == 0, done.err
    assert re.search(r"two, lines? 1\b.*cut at the maximum length", done.err)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--keep-markup", "--alignments", "a"], "no --keep-markup"),
        (["--keep-markup", "--num-hypotheses", "2"], "no --num-hypotheses"),
        (["--keep-markup", "--nbest-format", "json"], "no --nbest-format"),
        (["--split-sentences", "--alignments", "a"], "no --split-sentences"),
        (["--split-sentences", "--prefixes", "a"], "no --split-sentences"),
        (["--split-sentences", "--max-lengths", "a"], "no --split-sentences"),
        (["--split-sentences", "--num-hypotheses", "2"], "--num-hypotheses"),
        (["--source-language", "de"], "needs --split-sentences"),
        (["--split-sentences"], "Give --source-language CODE"),
    ],
)
def test_what_cannot_be_done_is_refused(refused, digits, source, words, reason):
    assert reason in refused(
        "translate", digits / "run", "--input", source, *words
    )


def test_a_prefix_with_markup_is_refused(refused, digits, source, write_file):
    prefixes = write_file("prefixes", "1\n" * 5 + "{x}\n")
    words = ["--input", source, "--keep-markup", "--prefixes", prefixes]
    error = refused("translate", digits / "run", *words)
    assert "'{x}' for text 6" in error
