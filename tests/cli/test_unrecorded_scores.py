"""`evaluate` finds mistakes before it translates, and prints what it has.

A stand-in for a search answers with the sources; the scores do not matter.
"""

import shutil

import pytest

from keras_deepnmt.translator import Translator


@pytest.fixture
def texts(digits, tmp_path, monkeypatch):
    """The current folder, with a copy of the run; the list of what was done.

    A function that is put into the list is called by the first translation.
    """
    shutil.copytree(
        digits / "run",
        tmp_path / "run",
        ignore=shutil.ignore_patterns("checkpoints", "scores.json"),
    )
    (tmp_path / "lines").write_text("1 2 3 4\n5 6 7 8\n")
    monkeypatch.chdir(tmp_path)
    done = []

    def translate(self, sources, **given):
        for action in filter(callable, list(done)):
            action()
        done.append(len(sources))
        return list(sources)

    monkeypatch.setattr(Translator, "translate", translate)
    return done


WORDS = ["--source", "lines", "--target", "lines", "--no-compile"]
# Where the file would be locked: the folder cannot be written, also by root.
LOCK = "run/.scores.json.lock"


def test_a_broken_recipe_is_refused_before_the_translation(
    refused, tmp_path, texts
):
    (tmp_path / "run" / "recipe.yaml").write_text("name: [")
    assert "run/recipe.yaml" in refused("evaluate", "run", *WORDS)
    assert texts == []


def test_all_runs_are_checked_before_the_first_translates(
    refused, tmp_path, texts
):
    shutil.copytree("run", "other")
    (tmp_path / "other" / "run.json").unlink()
    assert "other" in refused("evaluate", "run", "other", *WORDS)
    (tmp_path / "gold.m2").write_text("S 1 2\n\n")
    words = ["evaluate", "run", "other", "--m2", "gold.m2"]
    assert "other" in refused(*words)
    shutil.rmtree("other")
    shutil.copytree("run", "other")
    words = ["evaluate", "run", "other", *WORDS, "--differences", "no/file"]
    assert "no/file: cannot be written" in refused(*words)
    (tmp_path / "other" / "scores.json").write_text("{")
    assert "other/scores.json" in refused("evaluate", "run", "other", *WORDS)
    assert texts == []


def test_a_run_that_cannot_be_written_is_scored_with_a_warning(
    deepnmt, tmp_path, texts
):
    (tmp_path / LOCK).mkdir()
    done = deepnmt("evaluate", "run", *WORDS)
    assert done.code == 0 and "100.00" in done.out
    warning, *_ = done.err.splitlines()
    assert "run/scores.json: cannot be written" in warning
    assert texts == [2]


def test_scores_are_printed_whatever_happens_to_the_file(
    deepnmt, tmp_path, texts
):
    texts.append(lambda: (tmp_path / LOCK).mkdir())
    done = deepnmt("evaluate", "run", *WORDS)
    assert done.code == 2 and "100.00" in done.out
    assert "run: the scores above were not recorded" in done.err
    assert "warning" not in done.err
