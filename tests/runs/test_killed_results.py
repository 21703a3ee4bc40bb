"""A run that is killed while its final model is written stays usable.

The process is killed before each rename in turn, of the model's folder, the
tokenizers, `run.json` and `recipe.yaml`. Each command that reads the run then
has the model of before or the new one, or says in a line how to get it.
"""

import os
import shutil
import signal

import numpy as np
import pytest
from digit_run import environment
from forked_processes import run_forked

from keras_deepnmt.cli import main
from keras_deepnmt.errors import UserError
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.translator.loading import read_run

PROGRAM = """
import os, shutil, signal, sys
from pathlib import Path
import numpy as np
from keras_deepnmt.runs.run_folder import RunFolder

run_dir, new_model, prepared_dir, number = sys.argv[1:]
renames = []

def dying(rename):
    def count(*paths):
        if len(renames) == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        renames.append(paths)
        rename(*paths)
    return count

class Model:
    variables = (np.zeros(3),)

    def save_to_preset(self, folder):
        shutil.copytree(new_model, folder, dirs_exist_ok=True)

os.rename, os.replace = dying(os.rename), dying(os.replace)
folder = RunFolder(run_dir)
summary = folder.read_summary() | {"steps": 7}
folder.write_result(Model(), summary, Path(prepared_dir))
"""
# What a reading command says that finds files of two models.
REMEDY = "run the same `deepnmt train` again, which makes the final model anew"


@pytest.fixture(scope="module")
def new_model(finished_run, tmp_path_factory):
    """The folder of another model for the run."""
    model = read_run(finished_run).load_model()
    for weight in model.weights:
        weight.assign(np.full(weight.shape, 0.5))
    folder = tmp_path_factory.mktemp("new") / "model"
    model.save_to_preset(str(folder))
    return folder


@pytest.fixture
def killed_runs(finished_run, new_model, prepared_dir, tmp_path):
    """Yields a copy of the run for each rename before which it was killed."""

    def runs(numbers=range(20)):
        for number in numbers:
            run_dir = tmp_path / f"killed{number}" / "run"
            shutil.copytree(finished_run, run_dir)
            run = RunFolder(run_dir)
            # As training does that goes on after a finished run.
            run.record(run.recipe())
            program = ["-c", PROGRAM, run_dir, new_model, prepared_dir, number]
            done = run_forked(program, env=environment())
            if done.returncode == 0:
                return
            assert done.returncode == -signal.SIGKILL, done.stderr
            yield number, run_dir

    return runs


@pytest.mark.thorough
def test_each_reader_finds_one_whole_model_or_says_how_to_get_it(killed_runs):
    found = []
    for number, run_dir in killed_runs():
        try:
            run = read_run(run_dir)
            weights = run.load_model().get_weights()
        except UserError as error:
            assert REMEDY in str(error)
            assert not RunFolder(run_dir).has_whole_model()
            found.append("neither")
            continue
        is_new = all((weight == 0.5).all() for weight in weights)
        # As `run.json` says.
        assert run.summary["steps"] == (7 if is_new else 6), number
        found.append("new" if is_new else "old")
    # Before the old model is set aside, between the two renames of the folder,
    # until `run.json` is there, and before `recipe.yaml`.
    assert found[:2] == ["old", "old"] and found[-1] == "new"
    assert set(found[2:-1]) == {"neither"}


COMMANDS = {
    "translate": ["--no-compile", "--input", "{folder}/text"],
    "score": ["--source", "{folder}/text", "--target", "{folder}/text"],
    "evaluate": ["--no-compile", "--prepared", "{prepared}"],
    "export": ["{folder}/preset", "--format", "preset"],
    "average": ["--last", "2", "--output", "{folder}/mean"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("verb", COMMANDS)
def test_each_command_says_in_a_line_what_it_cannot_read(
    killed_runs, prepared_dir, verb, capfd, without_search
):
    codes = []
    # Between the two renames of the folder, and right after them.
    for _, run_dir in killed_runs([1, 2]):
        folder = run_dir.parent
        (folder / "text").write_text("a b c\n")
        words = [
            word.format(folder=folder, prepared=prepared_dir)
            for word in COMMANDS[verb]
        ]
        capfd.readouterr()
        codes.append(main([verb, str(run_dir), *words]))
        errors = capfd.readouterr().err
    # `average` reads checkpoints, and no model.
    assert codes == [0, 0 if verb == "average" else 2], errors
    if codes[1]:
        assert errors.count("\n") == 1 and REMEDY in errors, errors


@pytest.mark.thorough
def test_training_again_makes_a_damaged_model_anew(
    finished_run, train_in, tmp_path, capfd, without_search
):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished_run, run.directory)
    weights = run.model_dir / "model.weights.h5"
    os.truncate(weights, weights.stat().st_size // 2)
    with pytest.raises(UserError, match=REMEDY):
        read_run(run.directory).load_model()
    assert train_in(quiet=False)["steps"] == 6
    said = capfd.readouterr().err
    assert "is made anew" in said and "Resuming at update 6." in said
    whole, made = (read_run(one) for one in (finished_run, run.directory))
    for expected, weight in zip(
        whole.load_model().weights, made.load_model().weights, strict=True
    ):
        np.testing.assert_array_equal(expected, weight)
    train_in(quiet=False)
    assert "this run is finished" in capfd.readouterr().err
