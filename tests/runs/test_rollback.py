"""What must be true of a run that diverges.

* it continues from the last good checkpoint with a lower rate
* killed at any moment, it ends bit by bit where it would have ended
* checkpoints made after the divergence are deleted
* after too many rollbacks, or without a checkpoint, it stops in one line
"""

import json

import keras
import numpy as np
import pytest
from broken_runs import checkpoint, fails_at

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.recipes.training_schema import DivergenceRecipe
from keras_deepnmt.runs.callbacks import UpdateCallbacks
from keras_deepnmt.runs.rollback import Rollbacks
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.training import Adam
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.training.divergence import Diverged, DivergenceDetector

SHORT = {"data.valid": None, "training.steps": 6}


@pytest.fixture
def diverges(monkeypatch):
    """Makes an update diverge while the rate is above a share of its own."""
    real = DivergenceDetector.on_train_batch_end

    def at(update, above):
        def on_train_batch_end(self, batch, logs=None):
            factor = self.model.optimizer.rate_factor
            if self._step + 1 == update and float(factor) > above:
                logs = {**logs, "loss": float("nan")}
            real(self, batch, logs)

        monkeypatch.setattr(
            DivergenceDetector, "on_train_batch_end", on_train_batch_end
        )

    return at


@pytest.fixture
def start(recipe_file, tmp_path):
    def run(name, **changes):
        recipe = load_recipe(
            recipe_file,
            SHORT | {f"training.divergence.{k}": v for k, v in changes.items()},
        )
        return train(recipe, tmp_path / name, quiet=True)

    return run


@pytest.mark.thorough
def test_a_run_rolled_back_and_killed_ends_where_it_would_have_ended(
    start, diverges, tmp_path, monkeypatch
):
    # At the rate, and at half of it; a quarter is low enough.
    diverges(at_update := 5, above=0.3)
    start("whole", threshold=50.0)
    known = json.loads(
        RunFolder(tmp_path / "whole").divergence_file.read_text()
    )
    assert [r["to"] for r in known["rollbacks"]] == [4, 4]
    expected = checkpoint(tmp_path / "whole", 6)
    # The factor on the rate.
    assert any(v.shape == () and v == 0.25 for v in expected.values())
    # Killed after both rollbacks, before a checkpoint holds the lower rate.
    fails_at(monkeypatch, at_update, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        start("killed", threshold=50.0)
    assert CheckpointStore(tmp_path / "killed/checkpoints").latest() == 4
    # And once more when one does.
    fails_at(monkeypatch, 6, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        start("killed", threshold=50.0)
    start("killed", threshold=50.0)
    received = checkpoint(tmp_path / "killed", 6)
    assert expected.keys() == received.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(value, received[name], err_msg=name)
    resumed = json.loads(
        RunFolder(tmp_path / "killed").divergence_file.read_text()
    )
    assert resumed["rollbacks"] == known["rollbacks"]


@pytest.mark.thorough
def test_a_run_that_diverges_too_often_stops_in_one_line(
    start, diverges, tmp_path
):
    diverges(3, above=0.0)
    for _ in range(2):
        with pytest.raises(UserError) as info:
            start("run", most_rollbacks=1)
        message = str(info.value)
        assert "update 3: the loss is nan, and 1 rollbacks did not" in message
        assert "the checkpoint of step 2 is kept" in message
        assert "training.learning_rate.peak" in message
        assert "\n" not in message


def test_without_a_checkpoint_it_stops_in_one_line(start, diverges):
    diverges(1, above=0.0)
    with pytest.raises(UserError, match="there is no checkpoint before"):
        start("run")


def test_a_checkpoint_of_what_went_wrong_is_not_taken(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(Adam(0.5))
    model.optimizer.build(model.trainable_variables)
    store = CheckpointStore(tmp_path / "checkpoints")
    kernel = model.trainable_variables[0]
    for step, value in ((1, 1.0), (2, 2.0), (3, np.nan), (5, 5.0)):
        kernel.assign(np.full((2, 1), value))
        store.save(model, step)
    rollbacks = Rollbacks(RunFolder(tmp_path), DivergenceRecipe())
    told = rollbacks.roll_back(model, store, Diverged(7, 9.0, 4))
    assert "update 7: the loss is 9; back to the checkpoint of update 2" in told
    assert store.steps() == [1, 2]
    np.testing.assert_array_equal(kernel, np.full((2, 1), 2.0))
    assert float(model.optimizer.learning_rate) == 0.25


def test_losses_are_read_before_a_checkpoint_is_saved(tmp_path):
    rollbacks = Rollbacks(RunFolder(tmp_path), DivergenceRecipe())
    assert rollbacks.detector.check_every == 10
    rollbacks.detector.on_train_batch_end(0, {"loss": np.nan})
    rollbacks.detector.set_model(object())
    with pytest.raises(Diverged, match="update 1: the loss is nan"):
        rollbacks.save_state(1)


def test_callbacks_of_a_run_get_losses_that_nobody_has_read():
    class Unread:
        """Anything that Keras would convert by reading it."""

    seen = []
    reader = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(logs["loss"])
    )
    callbacks = UpdateCallbacks([reader])
    callbacks.on_train_batch_end(0, {"loss": Unread()})
    assert isinstance(seen[0], Unread)


def test_the_running_mean_of_a_checkpoint_is_taken_up_with_it(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(Adam(0.5))
    recipe = DivergenceRecipe(threshold=2.0)
    before = Rollbacks(RunFolder(tmp_path), recipe)
    for step, state in ((2, [3.5, 1]), (4, [3.25, 0])):
        before.detector.state = state
        before.save_state(step)
    after = Rollbacks(RunFolder(tmp_path), recipe)
    after.restore_state(model, 2)
    assert after.detector.state == [3.5, 1]
    after.restore_state(model, 4)
    assert after.detector.state == [3.25, 0]
