"""What must be true of n-best lists.

* each format is read as it is written, and numbers sentences from 0
* lists of the decoder Moses are read, and given back with one more feature
* the score of a hypothesis is the search's: of its text where the tokenizer
  divides it likewise, of its pieces always
* what is no list, or not that of the sources, is told in one line
"""

import json
import re

import pytest

from keras_deepnmt import Translator
from keras_deepnmt.commands.terminal.nbest_lists import (
    nbest_lines,
    read_hypothesis,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Hypothesis

pytestmark = pytest.mark.thorough(each_commit=True)

# As its decoder writes it, with word alignments.
MOSES = (
    "7 ||| this is a small house  ||| LexicalReordering0= -1.6 0 0 "
    "Distortion0= 0 LM0= -28.2 PhrasePenalty0= 2 ||| -28.9 ||| 0-0 1-1 2-2"
)
SENTENCES = ["1 2 3", "", "4 4 1 7"]


class Tokenizer:
    def pieces(self, ids):
        return [f"p{number}" for number in ids]


@pytest.mark.parametrize(
    "text", ["a dog", "", "a ||| b", "|||", "x||| -1", "{"]
)
@pytest.mark.parametrize("kind", ["plain", "moses", "json"])
def test_a_list_is_read_as_it_is_written(text, kind):
    found = Hypothesis(text, -1.5, -3.25, (9, 3), features=(-1.5, 0.5))
    (line,) = nbest_lines([[found]], 4, kind, Tokenizer(), ["Search", "Other"])
    read = read_hypothesis(line)
    assert (read.number, read.text) == (4, text)
    assert read.pieces == (("p9", "p3") if kind == "json" else None)
    assert read.has_feature("Other") == (kind != "plain")
    again = read_hypothesis(read.with_feature("More", -2.0))
    assert (again.number, again.text) == (4, text)
    assert again.has_feature("More") and again.pieces == read.pieces


def test_the_formats_are_those_of_the_guide():
    found = Hypothesis("a dog", -1.5, -3.25, (9, 8, 3))
    lines = {
        kind: next(nbest_lines([[found]], 0, kind, Tokenizer()))
        for kind in ("plain", "moses", "json")
    }
    assert lines["plain"] == "0 ||| a dog ||| -1.500000"
    assert lines["moses"] == (
        "0 ||| a dog ||| LogProb= -3.250000 Length= 3 ||| -1.500000"
    )
    assert json.loads(lines["json"]) == {
        "sentence": 0,
        "text": "a dog",
        "score": -1.5,
        "log_prob": -3.25,
        "pieces": ["p9", "p8", "p3"],
        "truncated": False,
    }


def test_a_list_of_moses_keeps_all_that_it_has():
    read = read_hypothesis(MOSES)
    assert (read.number, read.text) == (7, "this is a small house")
    assert read.has_feature("LM0") and not read.has_feature("-28.2")
    assert read.with_feature("NMT0", -4.0).split(" ||| ") == [
        "7",
        "this is a small house",
        "LexicalReordering0= -1.6 0 0 Distortion0= 0 LM0= -28.2 "
        "PhrasePenalty0= 2 NMT0= -4.000000",
        "-28.9",
        "0-0 1-1 2-2",
    ]
    # Of its first versions, which gave no names.
    unnamed = read_hypothesis("0 ||| a ||| -1 -2.5 ||| -3.5")
    assert (unnamed.text, unnamed.features) == ("a", "-1 -2.5")


@pytest.mark.parametrize(
    "line",
    [
        *("", "a dog", "0 ||| a dog", "x ||| a dog ||| -1", "0 ||| a ||| dog"),
        *("{", '{"sentence": 0}', '{"sentence": -1, "text": "a"}'),
        '{"sentence": 0, "text": "a", "pieces": "a"}',
        '{"sentence": 0, "text": "\\udc41"}',
        f'{{"sentence": 0, "text": "a", "more": {"[" * 500}{"]" * 500}}}',
        f'{{"sentence": 0, "text": {"[" * 100_000}',
        f'{{"sentence": {"9" * 5000}, "text": "a"}}',
    ],
)
def test_what_is_no_line_of_a_list_is_refused(line):
    with pytest.raises(ValueError, match="it|its"):
        read_hypothesis(line)


@pytest.fixture
def write_list(deepnmt, digits, write_file, tmp_path):
    """Writes a list of the run, and gives its file and its lines."""
    source = write_file("source", "".join(f"{x}\n" for x in SENTENCES))

    def write(name, *words):
        file = tmp_path / name
        words = [*words, "--input", source, "--output", file, "--no-compile"]
        done = deepnmt("translate", digits / "run", *words, "-q")
        assert done.code == 0, done.err
        return file, file.read_text().splitlines()

    return write


def test_each_hypothesis_has_its_score_and_its_alignment(
    deepnmt, digits, write_list, tmp_path
):
    words = ["--num-hypotheses", "3", "--alignments", tmp_path / "links"]
    file, lines = write_list("list", *words, "--nbest-format", "moses")
    found = [read_hypothesis(line) for line in lines]
    assert [h.number for h in found] == [0, 0, 0, 1, 2, 2, 2]
    links = (tmp_path / "links").read_text().splitlines()
    assert [len(row.split()) for row in links] == [
        len(h.text.split()) for h in found
    ]
    words = ["score", digits / "run", "--source", tmp_path / "source", "-q"]
    words += ["--nbest", file, "--no-compile"]
    done = deepnmt(*words, "--feature", "Again")
    assert done.code == 0, done.err
    again = [read_hypothesis(line) for line in done.out.splitlines()]
    for before, after in zip(found, again, strict=True):
        values = after.features.split()
        assert after.features.startswith(before.features)
        if before.text:  # the translation of nothing is certain
            assert float(values[-1]) == pytest.approx(
                float(values[1]), abs=1e-4
            )
    rows = deepnmt(*words, "--totals").out.splitlines()[1:]
    assert [row.split("\t")[2] for row in rows] == [
        after.features.split()[-1] for after in again
    ]


@pytest.mark.thorough
def test_drawn_pieces_have_the_probability_of_the_draw(
    deepnmt, digits, write_list, tmp_path
):
    words = ["--sampling", "true", "--sampling-temperature", "4"]
    words += ["--num-hypotheses", "8", "--nbest-format", "json"]
    file, lines = write_list("list", *words)
    drawn = [json.loads(line) for line in lines]
    score = ["score", digits / "run", "--source", tmp_path / "source", "-q"]
    score += ["--nbest", file, "--pieces", "--no-compile"]
    done = deepnmt(*score, "--feature", "Again")
    assert done.code == 0, done.err
    for line, before in zip(done.out.splitlines(), drawn, strict=True):
        after = json.loads(line)
        again = after.pop("features")["Again"]
        assert after == before
        if before["text"]:
            assert again == pytest.approx(before["log_prob"], abs=1e-3)
    # Another tokenizer lacks these pieces.
    for place, piece in enumerate(drawn[0]["pieces"]):
        drawn[0]["pieces"][place] = f"{piece}x"
    file.write_text(f"{json.dumps(drawn[0])}\n")
    done = deepnmt(*score)
    assert done.code == 2
    assert "line 1: The vocabulary has no piece" in done.err


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("0 ||| 1 ||| -1\n", [], "--nbest needs --source"),
        ("1 2 3\n", ["--source"], "list, line 1: not a line of an n-best"),
        ("3 ||| 1 ||| -1\n", ["--source"], "sentence 3, but .* has 3 lines"),
        (
            "0 ||| 1 ||| -1\n",
            ["--source", "--pieces"],
            "line 1: has no `pieces`",
        ),
        (
            "0 ||| 1 ||| A= 1 ||| -1\n",
            ["--source", "--feature", "A"],
            "line 1: has a feature A already",
        ),
        ("", ["--source", "--feature", "a b"], "without white space"),
        ("", ["--source", "--feature", "a", "--totals"], "no --feature"),
    ],
)
def test_a_wrong_list_is_told_in_one_line(
    refused, digits, write_file, tmp_path, text, words, reason
):
    source = write_file("source", "1 2 3\n" * 3)
    given = ["--nbest", write_file("list", text), "-o", tmp_path / "scores"]
    for word in words:
        given += [word, source] if word == "--source" else [word]
    error = refused("score", digits / "run", *given)
    assert re.search(reason, error), error
    assert not (tmp_path / "scores").exists()


def test_nothing_is_printed_before_a_file_was_checked(
    deepnmt, digits, write_file
):
    source = write_file("source", "1 2 3\n" * 3)
    lines = "0 ||| 1 ||| -1\n" * 40
    score = ["score", digits / "run", "--no-compile", "--batch-size", "16"]
    wrong = write_file("list", f"{lines}wrong\n")
    words = [*score, "--source", source, "--nbest"]
    done = deepnmt(*words, wrong)
    assert (done.code, done.out) == (2, "") and "list, line 41" in done.err
    # Of a stream the first lines are.
    wrong.write_text(f"wrong\n{lines}")
    done = deepnmt(*words, "-", stdin=wrong)
    assert (done.code, done.out) == (2, "") and "line 1" in done.err
    longer = write_file("longer", "1\n" * 4)
    done = deepnmt(*score, "--source", source, "--target", longer)
    assert (done.code, done.out) == (2, "") and "same number" in done.err
    # Nothing to score is no mistake.
    done = deepnmt(*words, "-")
    assert (done.code, done.out) == (0, "line\tposition\ttoken\tlog_prob\n")


def test_the_list_of_a_shorter_file_is_noticed(deepnmt, digits, write_file):
    source = write_file("source", "1 2 3\n" * 4)
    score = ["score", digits / "run", "--no-compile", "--source", source]
    shorter = write_file("list", "0 ||| 1 ||| -1\n2 ||| 1 ||| -1\n")
    done = deepnmt(*score, "--totals", "--nbest", shorter)
    assert done.code == 0 and len(done.out.splitlines()) == 3
    (warning,) = done.err.splitlines()
    assert "source, lines 2 and 4: no translation in" in warning


def test_options_of_a_list_need_one(refused, digits):
    for words in (["--feature", "a"], ["--pieces"]):
        error = refused("score", digits / "run", *words)
        assert f"{words[0]} needs --nbest" in error


@pytest.mark.thorough
def test_the_ids_of_a_hypothesis_are_scored(digits):
    options = {"sampling": True, "sampling_temperature": 4.0, "num_beams": 8}
    translator = Translator.load(digits / "run", compiled=False, **options)
    found = translator.translate_nbest("1 2 3", 8)
    scores = translator.score(["1 2 3"] * 8, [h.ids for h in found])
    assert [score.total for score in scores] == pytest.approx(
        [h.log_prob for h in found], abs=1e-3
    )
    alone = translator.score("1 2 3", found[0].ids)
    assert alone.tokens == scores[0].tokens
    for wrong in ([3, 3], [9], [9, 999, 3], [0, 3]):
        with pytest.raises(UserError, match="line 2: ids must be tokens"):
            translator.score(["1", "1"], ["1", wrong])
    with pytest.raises(TypeError, match="`targets` must be a string or a"):
        translator.score(["1"], [[9.5, 3]])
