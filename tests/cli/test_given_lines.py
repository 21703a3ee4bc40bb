"""`evaluate`, `tune` and `report` take the files that `translate` takes."""

import json
import shutil

import pytest

from keras_deepnmt.files import lines_sha256
from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.runs.scores_file import given_sha256
from keras_deepnmt.translator import Translator

SENTENCES = ["1 2 3", "4 5 6", "7 8"]
PREFIXES = ["Łódź 7", "", "9"]
PHRASES = ["", "Ż\t9 8", ""]
LENGTHS = ["", "20", "9"]


@pytest.fixture
def words(digits, tmp_path, write_file):
    """A run of its own, and the options of a text and its reference."""
    shutil.copytree(digits / "run", tmp_path / "run")
    (tmp_path / "run" / "scores.json").unlink(missing_ok=True)
    text = "".join(f"{line}\n" for line in SENTENCES)
    files = write_file("source", text), write_file("target", text)
    return ["--source", files[0], "--target", files[1], "--quiet"]


@pytest.fixture
def given(write_file):
    """The options of all three files."""
    lines = {
        "prefixes": PREFIXES,
        "constraints": PHRASES,
        "max-lengths": LENGTHS,
    }
    found = []
    for name, texts in lines.items():
        text = "".join(f"{line}\n" for line in texts)
        found += [f"--{name}", write_file(name, text)]
    return found


def rows_of(run):
    return json.loads((run / "scores.json").read_text())["evaluations"]


@pytest.mark.thorough
def test_an_evaluation_begins_with_what_is_given(
    deepnmt, refused, words, given, tmp_path
):
    run = tmp_path / "run"
    words = ["evaluate", run, *words, "--no-compile", "--metrics", "bleu"]
    output = tmp_path / "output"
    done = deepnmt(*words, *given, "--output", output, "--resamples", 10)
    assert done.code == 0, done.err
    lines = output.read_text().splitlines()
    assert lines[0].startswith("Łódź 7") and lines[2].startswith("9")
    assert "Ż" in lines[1] and "9 8" in lines[1]
    (row,) = rows_of(run)
    assert row["given"] == {
        "prefixes_sha256": lines_sha256(PREFIXES),
        "constraints_sha256": lines_sha256(PHRASES),
        "max_lengths_sha256": lines_sha256(LENGTHS),
    }
    assert (
        Translator.load(run, compiled=False).translate(
            SENTENCES,
            prefixes=PREFIXES,
            constraints=[line.split("\t") for line in PHRASES],
            max_lengths=[0, 20, 9],
        )
        == lines
    )
    few = tmp_path / "few"
    for text, said in (("7\n", "fewer than there"), ("7\n" * 4, "more than t")):
        few.write_text(text)
        error = refused(*words, "--prefixes", few)
        assert f"{few}: must have a line for each sentence" in error
        assert said in error
    few.write_text("7\n\nx\n")
    assert f"{few}, line 3: must be a numb" in refused(
        *words, "--max-lengths", few
    )
    few.write_text(f"7\n\n{'7 ' * 2_000}\n")
    error = refused(*words, "--prefixes", few)
    assert f"{few}, line 3: must have at most" in error
    # The run's own split has more sentences.
    error = refused("evaluate", run, "--prefixes", few, "--no-compile")
    assert "fewer than there are sentences" in error
    assert len(rows_of(run)) == 1


def test_translations_in_files_have_nothing_given(refused, given):
    words = ["--hypotheses", "a", "--references", "b", *given[:2]]
    assert "--prefixes cannot be given" in refused("evaluate", *words)
    error = refused("evaluate", "run", "--m2", "a", *given[4:])
    assert "--max-lengths cannot be given with --m2" in error


@pytest.mark.thorough
def test_other_prefixes_are_another_row(digits, words, tmp_path):
    options = {
        "source_file": words[1],
        "target_file": words[3],
        "metrics": ("bleu",),
        "num_resamples": 10,
        "compiled": False,
        "num_beams": 1,
    }
    run = tmp_path / "run"
    for prefixes in (PREFIXES, None, ["7"] * 3, None, PREFIXES):
        evaluate(run, prefixes=prefixes, **options)
    # Those of an earlier row come last again.
    assert [row.get("given") for row in rows_of(run)] == [
        given_sha256(["7"] * 3),
        None,
        given_sha256(PREFIXES),
    ]


@pytest.mark.thorough
def test_weights_are_tuned_on_what_is_given(deepnmt, refused, words, given):
    _, source, *_ = words
    words = ["tune", source.parent / "run", *words, "--no-compile"]
    words += ["--rerank", source.parent / "run"]
    done = deepnmt(*words, *given)
    assert done.code == 0, done.err
    tuning = json.loads(done.out)["tuning"]
    assert tuning["prefixes_sha256"] == lines_sha256(PREFIXES)
    assert tuning["max_lengths_sha256"] == lines_sha256(LENGTHS)
    source.with_name("prefixes").write_text("7\n")
    assert "fewer than there are sentences" in refused(*words, *given)


@pytest.mark.thorough
def test_a_report_is_about_what_is_given(
    deepnmt, refused, words, given, tmp_path
):
    run = tmp_path / "run"
    words = ["report", run, *words, "--no-compile", "--resamples", 10]
    done = deepnmt(*words, *given)
    assert done.code == 0, done.err
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Łódź 7" in page and "Ż" in page
    (row,) = rows_of(run)
    assert row["given"]["prefixes_sha256"] == lines_sha256(PREFIXES)
    (tmp_path / "constraints").write_text("7\n" * 4)
    assert "more than the 3 lines" in refused(*words, *given)
