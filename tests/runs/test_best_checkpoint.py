"""What must be true of the checkpoint of the best validation.

* it stays, and run.json and the command name it
* with early stopping it is the final model
* a run that is interrupted keeps the same one, bit by bit, also if it was
  interrupted while this one was saved
"""

import numpy as np
import pytest
from broken_runs import arrays, fails_at

from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.training.checkpoints import CheckpointStore

pytestmark = pytest.mark.thorough

# Checkpoints are due after updates 2, 5, 8, ...: not at the best validation.
EARLY = {
    "training.steps": 20,
    "training.validate_every": 2,
    "training.checkpoint_every": 3,
    "training.early_stopping_patience": 2,
}
SCORES = {2: 5.0, 4: 9.25, 6: 7.0, 8: 9.25}
BEST = {"step": 4, "metric": "val_bleu", "value": 9.25}


@pytest.fixture(scope="module")
def scored(given_scores):
    with given_scores(SCORES):
        yield


@pytest.fixture(scope="module")
def whole(scored, recipe_file, prepared_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "whole"
    recipe = load_recipe(recipe_file, EARLY)
    train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


def test_with_early_stopping_the_best_checkpoint_is_the_final_model(whole):
    run = RunFolder(whole)
    summary = run.read_summary()
    assert summary["steps"] == 8
    assert summary["best"] == BEST and summary["averaged_steps"] == [4]
    assert [logs["step"] for _, logs in run.history()] == [2, 4, 6, 8]
    best = run.checkpoints().best()
    assert best.path.name == "best-00000004"
    kept = arrays(best.path / "model.weights.h5")
    final = arrays(whole / "model" / "model.weights.h5")
    assert final
    for name, value in final.items():
        np.testing.assert_array_equal(value, kept[name], err_msg=name)
    last = arrays(run.checkpoints().path(8) / "model.weights.h5")
    assert any(np.any(final[name] != last[name]) for name in final)


def test_a_run_broken_off_keeps_the_same_best_checkpoint(
    whole, train_in, tmp_path, monkeypatch, capsys
):
    # Killed when the best one was kept and no checkpoint had come after it,
    # then after the validation that ends the run.
    for step, error in (
        (5, RuntimeError("killed")),
        (8, RuntimeError("killed")),
    ):
        fails_at(monkeypatch, step, error)
        with pytest.raises(RuntimeError, match="killed"):
            train_in(EARLY)
        assert RunFolder(tmp_path / "run").checkpoints().best().step == 4
    train_in(EARLY, quiet=False)
    error = capsys.readouterr().err
    assert "The final model is the checkpoint of update 4" in error
    assert "update 4, val_bleu 9.25" in error and "best-00000004" in error
    one, other = RunFolder(whole), RunFolder(tmp_path / "run")
    expected, received = one.read_summary(), other.read_summary()
    for key in ("best", "averaged_steps", "weights_sha256", "steps"):
        assert expected[key] == received[key]
    expected, received = (
        arrays(run.checkpoints().best().path / "model.weights.h5")
        for run in (one, other)
    )
    assert expected.keys() == received.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(value, received[name], err_msg=name)


def test_a_best_checkpoint_broken_off_is_made_up_for(
    whole, train_in, tmp_path, monkeypatch
):
    save_best, interrupts = CheckpointStore.save_best, [KeyboardInterrupt()]

    def interrupted(store, model, step, *details):
        if step == BEST["step"] and interrupts:
            raise interrupts.pop()
        return save_best(store, model, step, *details)

    monkeypatch.setattr(CheckpointStore, "save_best", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_in(EARLY)
    train_in(EARLY)
    one, other = RunFolder(whole), RunFolder(tmp_path / "run")
    expected, received = one.read_summary(), other.read_summary()
    for key in ("best", "averaged_steps", "weights_sha256", "steps"):
        assert expected[key] == received[key]
    for (_, first), (_, second) in zip(
        one.history(), other.history(), strict=True
    ):
        # The loss of the epoch was not lost with the validation.
        assert first["loss"] == pytest.approx(second["loss"], rel=1e-5)
        assert first["tokens"] == second["tokens"]
