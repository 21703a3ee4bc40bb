"""What must be true of the cache of compilations when a run is trained.

* a run that is continued, and another run of the recipe, compile nothing
* an entry cut short is thrown away; TensorFlow would end training there
* what the environment says stays, and is put back
* the folder stays below its limit; what this machine cannot use goes first
* where nothing is kept, training goes on and says so
"""

import os
import shutil
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
    ask_for_user_cache,
    cache_dir,
    describe_unused_cache,
    is_whole,
    user_cache_asked_for,
)

VARIABLE = "TF_XLA_FLAGS"
# Field 1 is text, field 2 a number, field 3 holds 300 bytes.
ENTRY = b"\x0a\x03key\x10\x96\x01\x1a\xac\x02" + bytes(300)


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


def test_a_cut_entry_is_no_whole_one(tmp_path):
    file = tmp_path / "entry.pb"
    # Between two fields a cut cannot be seen; TensorFlow's key comes first,
    # its code last.
    for length in (0, 1, 2, 4, 6, 9, 10, 11, len(ENTRY) - 1):
        file.write_bytes(ENTRY[:length])
        assert not is_whole(file), length
    file.write_bytes(ENTRY)
    assert is_whole(file)


def test_flags_of_the_environment_stay_and_come_back(monkeypatch, cache):
    monkeypatch.setenv(VARIABLE, "--tf_xla_clustering_debug")
    with user_cache_asked_for(wanted=False):
        assert os.environ[VARIABLE] == "--tf_xla_clustering_debug"
    assert not cache.exists()
    with user_cache_asked_for(wanted=True):
        flags = os.environ[VARIABLE]
        assert flags.startswith("--tf_xla_clustering_debug ")
        assert f'="{cache_dir(cache, "tensorflow")}"' in flags
        with user_cache_asked_for(wanted=True):
            assert os.environ[VARIABLE] == flags
    assert os.environ[VARIABLE] == "--tf_xla_clustering_debug"
    own = "--tf_xla_persistent_cache_directory=mine"
    monkeypatch.setenv(VARIABLE, own)
    with user_cache_asked_for(wanted=True):
        assert os.environ[VARIABLE] == own
        assert describe_unused_cache("tensorflow") is None
    monkeypatch.delenv(VARIABLE)
    with user_cache_asked_for(wanted=True):
        pass
    assert VARIABLE not in os.environ


def test_on_a_full_disk_nothing_is_asked_for(monkeypatch, tmp_path):
    full = shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: full)
    with user_cache_asked_for(wanted=True):
        assert os.environ[VARIABLE] == ""
        assert "no room" in describe_unused_cache("tensorflow")


def test_a_folder_that_cannot_be_written_is_told(cache, monkeypatch):
    cache.write_text("")
    with user_cache_asked_for(wanted=True):
        assert os.environ[VARIABLE] == ""
        assert "cannot be written" in describe_unused_cache("tensorflow")
    monkeypatch.setenv(USER_VARIABLE, "off")
    assert describe_unused_cache("tensorflow") is None


def test_a_full_cache_loses_other_machines_entries_then_the_oldest(
    cache, monkeypatch
):
    folder = cache_dir(cache, "tensorflow")
    other = folder.parent / "tensorflow-1.0-elsewhere"
    files = [folder / "old.pb", other / "new.pb", folder / "middle.pb"]
    for age, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(ENTRY)
        os.utime(file, (age, age))
    for most, expected in (
        (2, {"old.pb", "middle.pb"}),
        (1.9, {"middle.pb"}),
    ):
        monkeypatch.setattr(compilation_cache, "MOST_BYTES", most * len(ENTRY))
        ask_for_user_cache()
        kept = folder.parent.rglob("*.pb")
        assert {f.name for f in kept} == expected
        os.close(compilation_cache._locks.popitem()[1])


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
    said = "not kept: TensorFlow ran in this process before"
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
    recipe_file.write_text(text.replace("jit_compile: false", ""), "utf-8")
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
