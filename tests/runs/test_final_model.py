"""What must be true of the final model that `training.final_model` chooses.

* it is the mean, computed in NumPy, of the checkpoints that the choice names
* early stopping ends with the best ones, never with the mean of the last
* a run that is killed and resumed ends with the same weights
* a finished run can be given another final model by `deepnmt average`; a
  damaged checkpoint is named
* a full disk ends it in one line, and nothing is lost or left behind
"""

import shutil
import types
from dataclasses import replace

import numpy as np
import pytest
from broken_runs import arrays, fails_at

from keras_deepnmt import cli
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.average import average
from keras_deepnmt.runs.checkpoints import final_model
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.trained import find_run_folder

pytestmark = pytest.mark.thorough

# The two best validations are those of updates 4 and 6; training stops at 8.
EARLY = {
    "training.steps": 20,
    "training.validate_every": 2,
    "training.checkpoint_every": 1,
    "training.average_checkpoints": 2,
    "training.final_model": "average_best",
    "training.early_stopping_patience": 2,
}
SCORES = {2: 5.0, 4: 9.25, 6: 7.0, 8: 6.0}


@pytest.fixture(scope="module")
def scored(given_scores):
    with given_scores(SCORES):
        yield


@pytest.fixture(scope="module")
def stopped(scored, recipe_file, prepared_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "stopped"
    recipe = load_recipe(recipe_file, EARLY)
    train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


def mean_of(run_dir, *names):
    """The mean weights of some checkpoints, by the names in their files."""
    files = [
        arrays(run_dir / "checkpoints" / name / "model.weights.h5")
        for name in names
    ]
    return {
        name: np.mean([np.float64(file[name]) for file in files], axis=0)
        for name in files[0]
        if not name.startswith("optimizer")
    }


@pytest.mark.parametrize(
    ("choice", "number", "steps", "names"),
    [
        ("best", 2, [4], ["best-00000004"]),
        ("average_best", 1, [4], ["best-00000004"]),
        ("average_best", 2, [4, 6], ["best-00000004", "best-00000006"]),
        ("average_last", 1, [8], ["step-00000008"]),
        ("average_last", 2, [7, 8], ["step-00000007", "step-00000008"]),
    ],
)
def test_each_choice_is_the_mean_of_its_checkpoints(
    stopped, prepared_dir, tmp_path, choice, number, steps, names
):
    run = RunFolder(stopped)
    recipe = run.recipe()
    recipe = replace(
        recipe,
        training=replace(
            recipe.training,
            final_model=choice,
            average_checkpoints=number,
            early_stopping_patience=None,
        ),
    )
    manifest = PreparedData(prepared_dir).manifest
    model, used = final_model(recipe, run, manifest)
    assert used == steps
    model.save_weights(tmp_path / "final.weights.h5")
    received = arrays(tmp_path / "final.weights.h5")
    expected = mean_of(stopped, *names)
    assert expected.keys() == received.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(received[name], value, rtol=1e-6)


def test_early_stopping_ends_with_the_mean_of_the_best(stopped):
    summary = RunFolder(stopped).read_summary()
    assert summary["steps"] == 8 and summary["averaged_steps"] == [4, 6]
    assert summary["final_model"] == "average_best"
    assert summary["best"]["step"] == 4
    assert summary["valid"]["bleu"]["value"] >= 0
    final = arrays(stopped / "model" / "model.weights.h5")
    for name, value in mean_of(
        stopped, "best-00000004", "best-00000006"
    ).items():
        np.testing.assert_allclose(final[name], value, rtol=1e-6)


def test_a_run_killed_and_resumed_ends_with_the_same_mean(
    stopped, train_in, tmp_path, monkeypatch
):
    # Both of the best checkpoints are written by now.
    fails_at(monkeypatch, 7, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        train_in(EARLY)
    received = train_in(EARLY)
    expected = RunFolder(stopped).read_summary()
    for key in ("final_model", "best", "averaged_steps", "weights_sha256"):
        assert received[key] == expected[key]


def test_a_finished_run_gets_another_final_model(stopped, tmp_path, capsys):
    summary = average(stopped, tmp_path / "best", best=1)
    assert summary["averaged_steps"] == [4]
    assert summary["final_model"] == "average_best"
    final = arrays(tmp_path / "best" / "model" / "model.weights.h5")
    for name, value in mean_of(stopped, "best-00000004").items():
        np.testing.assert_array_equal(final[name], value.astype("float32"))
    with pytest.raises(UserError, match="9 are to be averaged"):
        average(stopped, tmp_path / "more", best=9)
    command = ["average", str(stopped), "--output", str(tmp_path / "more")]
    assert cli.main(command) == 2
    assert "needs --last or --best" in capsys.readouterr().err
    assert not (tmp_path / "more").exists()


def test_an_average_of_a_preset_folder_is_refused(tmp_path):
    name = "transformer_tiny.demo_de_en"
    for given in (name, find_run_folder(name)):
        with pytest.raises(UserError, match=f"{name}: is a preset folder, wh"):
            average(given, tmp_path / "mean", last=2)


def test_a_full_disk_ends_an_average_in_one_line(
    stopped, tmp_path, capsys, small_disk
):
    output = tmp_path / "mean"
    command = ["average", str(stopped), "--last", "2", "--output", str(output)]
    assert cli.main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the checkpoints could not be written (File too large)" in line
    run = RunFolder(stopped)
    with pytest.raises(UserError, match="the checkpoints are kept"):
        final_model(run.recipe(), run, run.read_summary())
    assert not list(stopped.glob(".*")) and not list(tmp_path.iterdir())


def test_an_average_without_room_is_not_begun(stopped, tmp_path, monkeypatch):
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: types.SimpleNamespace(free=1000)
    )
    message = f"{tmp_path / 'mean'}: could not be written .No space.*was kept"
    with pytest.raises(UserError, match=message):
        average(stopped, tmp_path / "mean", last=2)
    run, before = RunFolder(stopped), sorted(stopped.rglob("*"))
    model = final_model(run.recipe(), run, run.read_summary())[0]
    with pytest.raises(UserError, match="model: could not be written .No spac"):
        run.write_model(model)
    assert sorted(stopped.rglob("*")) == before
    assert not list(tmp_path.iterdir())


def test_a_damaged_best_checkpoint_is_named_and_the_next_one_replaces_it(
    stopped, tmp_path
):
    run_dir = tmp_path / "run"
    shutil.copytree(stopped, run_dir)
    best = run_dir / "checkpoints" / "best-00000004"
    with open(best / "model.weights.h5", "ab") as file:
        file.write(b"more")
    with pytest.raises(UserError, match="damaged.*Delete .*best-00000004"):
        average(run_dir, tmp_path / "best", best=1)
    shutil.rmtree(best)
    summary = average(run_dir, tmp_path / "best", best=1)
    assert summary["averaged_steps"] == [6]


def test_the_default_depends_on_early_stopping(recipe_file):
    def choice(**changes):
        changes = {f"training.{key}": value for key, value in changes.items()}
        return load_recipe(recipe_file, changes).training.final_model

    assert choice() == "average_last"
    assert choice(early_stopping_patience=3) == "best"
    assert (
        choice(early_stopping_patience=3, final_model="average_best")
        == "average_best"
    )
    with pytest.raises(UserError, match="`training.final_model`.*must be best"):
        choice(early_stopping_patience=3, final_model="average_last")


@pytest.mark.parametrize("choice", ["best", "average_best"])
def test_a_best_model_without_a_validation_set_is_refused(
    recipe_file, tmp_path, choice
):
    recipe = load_recipe(
        recipe_file, {"training.final_model": choice, "data.valid": None}
    )
    with pytest.raises(UserError, match=f"final_model: {choice}` needs a val"):
        train(recipe, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_null_and_a_wrong_choice_in_a_recipe(recipe_file):
    null = load_recipe(recipe_file, {"training.final_model": None})
    assert null.training.final_model == "average_last"
    with pytest.raises(
        UserError,
        match="must be 'best' or 'average_last' or 'average_best' or null. "
        "Received: 'last'",
    ):
        load_recipe(recipe_file, {"training.final_model": "last"})
