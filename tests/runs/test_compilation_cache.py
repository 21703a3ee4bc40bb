"""What must be true of the cache of compilations when a run is trained.

* a run that is continued, and another run of the recipe, compile nothing
* a truncated entry is deleted; TensorFlow would end training there
* where nothing is kept, training continues and prints why
"""

import os
import signal
from pathlib import Path

import keras
import pytest
from digit_run import environment
from forked_processes import run_forked

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.xla import cache as compilation_cache
from keras_deepnmt.xla.cache import (
    USER_VARIABLE,
    cache_dir,
)

VARIABLE = "TF_XLA_FLAGS"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A new cache of the user, of which TensorFlow has not been told."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(USER_VARIABLE, str(folder))
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(compilation_cache, "_locks", {})
    yield folder
    for lock in compilation_cache._locks.values():
        os.close(lock)


def test_a_cache_that_comes_too_late_is_told_and_training_goes_on(
    recipe_file, prepared_dir, tmp_path, monkeypatch, capsys
):
    keras.ops.ones(1) + 1
    monkeypatch.delenv(VARIABLE, raising=False)

    class Reached(Exception):
        pass

    def stop(self):
        raise Reached

    monkeypatch.setattr(TrainingLoop, "run", stop)
    recipe = load_recipe(recipe_file, {"training.jit_compile": True})
    with pytest.raises(Reached):
        train(recipe, tmp_path / "run", prepared_dir=prepared_dir)
    lines = capsys.readouterr().err.splitlines()
    said = "not kept: TensorFlow looked for devices before"
    assert sum(said in line for line in lines) == 1
    assert VARIABLE not in os.environ


def test_updates_that_were_not_made_are_noticed(recipe_file, tmp_path):
    fit = TrainingLoop.__new__(TrainingLoop)
    fit.run_folder = RunFolder(tmp_path)
    fit.model = keras.Sequential([keras.layers.Input((2,))])
    fit.model.compile("sgd")
    fit._check_updates(0)
    with pytest.raises(UserError, match="stopped at update 0 of 6"):
        fit._check_updates(6)


@pytest.mark.thorough
def test_a_continued_run_and_another_one_compile_nothing(
    recipe_file, prepared_dir, cache, tmp_path
):
    text = recipe_file.read_text(encoding="utf-8")
    recipe_file = tmp_path / "compiled.yaml"
    text = text.replace("jit_compile: false", "").replace(
        "shapes: 2", "shapes: 1"
    )
    recipe_file.write_text(text, "utf-8")
    variables = environment(**{USER_VARIABLE: str(cache)})

    def start(run_dir):
        words = ["train", recipe_file, "--run-dir", run_dir]
        words += ["--prepared", prepared_dir]
        finished = run_forked(["-m", "keras_deepnmt", *words], env=variables)
        assert finished.returncode == 0, finished.stderr
        assert "not kept" not in finished.stderr
        return RunFolder(run_dir).read_summary()["weights_sha256"]

    def entries():
        folder = cache_dir(cache, "tensorflow")
        return {file: file.stat().st_mtime_ns for file in folder.iterdir()}

    first = start(tmp_path / "first")
    before = entries()
    # Training, validation, and two searches, of one shape each.
    assert len(before) >= 4
    cut = max(before, key=lambda file: file.stat().st_size)
    os.truncate(cut, cut.stat().st_size - 1)
    program = Path(__file__).with_name("killed_process.py")
    words = [recipe_file, tmp_path / "second", prepared_dir, "update", "4"]
    killed = run_forked([program, *words], env=variables)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    after = entries()
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {cut}
    assert start(tmp_path / "second") == first
    assert entries() == after
