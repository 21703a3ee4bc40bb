"""What must be true of the cache of compilations in a run folder.

* a second start takes up what the first compiled, and trains the same
* an entry cut short is thrown away; TensorFlow would end training there
* what the environment says stays, and is put back
* the folder stays below its limit; what this machine cannot use goes first
* where it came too late, training goes on and says so
"""

import os
import shutil
import subprocess
import sys

import keras
import pytest
from digit_run import environment

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs import compilation_cache
from keras_deepnmt.runs.compilation_cache import (
    ask_for_cache,
    cache_asked_for,
    cache_dir,
    is_whole,
    open_cache,
)
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.runs.training_loop import TrainingLoop

VARIABLE = "TF_XLA_FLAGS"
# Field 1 is text, field 2 a number, field 3 holds 300 bytes.
ENTRY = b"\x0a\x03key\x10\x96\x01\x1a\xac\x02" + bytes(300)


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Opens the cache of a run whose process has a cache in use."""
    monkeypatch.setenv(VARIABLE, "")
    ask_for_cache(tmp_path)
    monkeypatch.setattr(compilation_cache, "_is_in_use", lambda folder: True)
    folder = cache_dir(tmp_path, "tensorflow")
    folder.mkdir(parents=True)
    return lambda: open_cache(tmp_path, "tensorflow"), folder


def test_a_cut_entry_is_no_whole_one(tmp_path):
    file = tmp_path / "entry.pb"
    # Between two fields a cut cannot be seen; TensorFlow's key comes first,
    # its code last.
    for length in (0, 1, 2, 4, 6, 9, 10, 11, len(ENTRY) - 1):
        file.write_bytes(ENTRY[:length])
        assert not is_whole(file), length
    file.write_bytes(ENTRY)
    assert is_whole(file)


def test_flags_of_the_environment_stay_and_come_back(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "--tf_xla_clustering_debug")
    with cache_asked_for(tmp_path, wanted=True):
        flags = os.environ[VARIABLE]
        assert flags.startswith("--tf_xla_clustering_debug ")
        assert f'="{cache_dir(tmp_path, "tensorflow")}"' in flags
    assert os.environ[VARIABLE] == "--tf_xla_clustering_debug"
    with cache_asked_for(tmp_path, wanted=False):
        assert os.environ[VARIABLE] == "--tf_xla_clustering_debug"
    own = "--tf_xla_persistent_cache_directory=mine"
    monkeypatch.setenv(VARIABLE, own)
    with cache_asked_for(tmp_path, wanted=True):
        assert os.environ[VARIABLE] == own
        assert open_cache(tmp_path, "tensorflow") is None
    monkeypatch.delenv(VARIABLE)
    with cache_asked_for(tmp_path, wanted=True):
        pass
    assert VARIABLE not in os.environ
    assert not list(tmp_path.iterdir())


def test_on_a_full_disk_nothing_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
    full = shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: full)
    with cache_asked_for(tmp_path / "run", wanted=True):
        assert "TF_XLA_FLAGS" not in os.environ
        assert "no room" in open_cache(tmp_path / "run", "tensorflow")


def test_what_was_cut_short_or_left_over_goes(opened):
    open_run, folder = opened
    (folder / "whole.pb").write_bytes(ENTRY)
    (folder / "cut.pb").write_bytes(ENTRY[:-1])
    (folder / "whole.pb.123.tmp").write_bytes(ENTRY)
    assert open_run() is None
    assert [file.name for file in folder.iterdir()] == ["whole.pb"]


def test_a_full_cache_loses_other_machines_entries_then_the_oldest(
    opened, monkeypatch
):
    open_run, folder = opened
    other = folder.parent / "tensorflow-1.0-elsewhere"
    other.mkdir()
    files = [folder / "old.pb", other / "new.pb", folder / "middle.pb"]
    for age, file in enumerate(files):
        file.write_bytes(ENTRY)
        os.utime(file, (age, age))
    for kept, most in ((2, 2), (1, 1.9)):
        monkeypatch.setattr(compilation_cache, "MOST_BYTES", most * len(ENTRY))
        open_run()
        expected = {2: {"old.pb", "middle.pb"}, 1: {"middle.pb"}}[kept]
        assert {f.name for f in folder.parent.rglob("*.pb")} == expected


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
    said = "compilations are not kept, since TensorFlow ran in this process"
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
def test_the_next_start_takes_up_what_was_compiled(recipe_file, tmp_path):
    def start(name):
        changes = ("training.jit_compile=true", "training.steps=3")
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "keras_deepnmt", "train", recipe_file),
                *("--run-dir", tmp_path / name, "--set", *changes),
            ],
            capture_output=True,
            text=True,
            env=environment(),
        )
        assert finished.returncode == 0, finished.stderr
        assert "not kept" not in finished.stderr
        return RunFolder(tmp_path / name).read_summary()["weights_sha256"]

    def entries(name):
        folder = cache_dir(tmp_path / name, "tensorflow")
        return {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}

    first = start("a first")
    before = entries("a first")
    # Training, validation, and two searches, of one shape each.
    assert len(before) >= 4
    (tmp_path / "second").mkdir()
    caches = [tmp_path / name / "xla_cache" for name in ("a first", "second")]
    caches[0].rename(caches[1])
    cut = sorted(cache_dir(tmp_path / "second", "tensorflow").iterdir())[0]
    os.truncate(cut, cut.stat().st_size - 1)
    assert start("second") == first
    after = entries("second")
    assert after.keys() == before.keys()
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {cut.name}
