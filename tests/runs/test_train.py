"""What must be true of training from a recipe.

* it leaves a whole run folder, which evaluates and averages
* a run that was killed or interrupted goes on as if it had never stopped, with
  the weights of one that was not, bit by bit
* an interrupted validation is made again
* a folder of another recipe, or of other data, is refused in one line
* a full disk is reported in one line, and no checkpoint is lost
* early stopping holds over restarts
* a batch of a shape that was not planned ends it in one line
"""

import errno
import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from broken_runs import fails_at

from keras_deepnmt.data.batches.batch_source import make_batch
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.average import average
from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.runs.loop import TrainingLoop, split_into_epochs
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.translator import Translator, read_run
from keras_deepnmt.zoo.registry import PRESET_VERSION


@pytest.fixture
def finished(finished_run, tmp_path_factory):
    """A copy of a run of six updates that nothing disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return shutil.copytree(finished_run, folder)


def final_weights(run_dir):
    """The last checkpoint's weights, optimizer included."""
    import h5py

    arrays = {}
    file = CheckpointStore(run_dir / "checkpoints").path(6) / "model.weights.h5"
    with h5py.File(file) as content:
        content.visititems(
            lambda name, item: (
                arrays.update({name: item[()]})
                if isinstance(item, h5py.Dataset)
                else None
            )
        )
    return arrays


def assert_same_run(first, second):
    expected, received = final_weights(first), final_weights(second)
    assert expected.keys() == received.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(value, received[name], err_msg=name)
    whole, resumed = (
        RunFolder(first).read_summary(),
        RunFolder(second).read_summary(),
    )
    assert whole["weights_sha256"] == resumed["weights_sha256"]
    epochs = [epoch for epoch, _ in RunFolder(second).history()]
    assert epochs == [0, 1]
    for (_, one), (_, two) in zip(
        RunFolder(first).history(), RunFolder(second).history(), strict=True
    ):
        assert one["val_loss"] == two["val_loss"]
        assert two["val_bleu"] > 0


def test_a_finished_run_holds_all_that_was_promised(finished, recipe_file):
    for name in (
        "recipe.yaml",
        "tokenizer/source.model",
        "tokenizer/target.model",
        "checkpoints/step-00000006/checkpoint.json",
        "model/model.weights.h5",
        "log.csv",
        "run.json",
    ):
        assert (finished / name).is_file(), name
    assert list((finished / "tensorboard").rglob("events*"))
    assert not [p for p in finished.rglob(".*")]
    run = RunFolder(finished).read_summary()
    assert run["steps"] == 6 and run["averaged_steps"] == [5, 6]
    assert run["valid"]["bleu"]["signature"].startswith("nrefs:1")
    scores = {
        logs["step"]: logs["val_bleu"]
        for _, logs in RunFolder(finished).history()
    }
    assert run["best"]["metric"] == "val_bleu"
    assert run["best"]["value"] == max(scores.values())
    assert scores[run["best"]["step"]] == run["best"]["value"]
    best = RunFolder(finished).checkpoints().best()
    assert (best.path / "model.weights.h5").is_file()
    recipe = load_recipe(finished / "recipe.yaml")
    assert recipe == load_recipe(recipe_file)
    assert recipe.resolved["tokenizer"] == run["tokenizer"]
    assert "keras" in recipe.resolved["versions"]
    assert recipe.resolved["preset_version"] == PRESET_VERSION
    assert read_run(finished).preset_version == PRESET_VERSION


def test_the_log_has_a_row_for_each_validation(finished):
    history = RunFolder(finished).history()
    assert [logs["step"] for _, logs in history] == [3, 6]
    for _, logs in history:
        assert {"loss", "val_loss", "val_bleu", "learning_rate"} < logs.keys()
        assert logs["tokens"] > 0 and logs["tokens_per_second"] > 0


def test_a_finished_run_returns_at_once(finished, recipe_file, monkeypatch):
    monkeypatch.setattr(TrainingLoop, "run", None)
    assert train(recipe_file, finished, quiet=True)["steps"] == 6


@pytest.mark.thorough
def test_the_run_evaluates_and_says_where_scores_come_from(
    finished, monkeypatch
):
    row = evaluate(finished, compiled=False)
    assert row["test_set"]["name"] == "test"
    assert row["test_set"]["sentences"] == 7
    assert row["decoding"]["num_beams"] == 2
    assert set(row["scores"]) == {"bleu", "chrf", "ter"}
    for score in row["scores"].values():
        assert "version" in score["signature"]
    for key in ("commit", "seconds", "tokens_per_second", "seed", "device"):
        assert row[key] is not None
    monkeypatch.setattr(Translator, "translate", lambda self, texts, **_: texts)
    evaluate(finished, compiled=False)
    evaluate(finished, compiled=False, num_beams=1)
    rows = json.loads((finished / "scores.json").read_text())["evaluations"]
    of_split = [r for r in rows if r["test_set"]["name"] == "test"]
    assert [r["decoding"]["num_beams"] for r in of_split] == [2, 1]


def test_two_files_are_scored_like_the_split(
    finished, recipe_file, monkeypatch
):
    monkeypatch.setattr(Translator, "translate", lambda self, texts, **_: texts)
    sides = [recipe_file.parent / f"test.{s}" for s in ("source", "target")]
    row = evaluate(finished, source_file=sides[0], target_file=sides[1])
    split = evaluate(finished)
    assert row["scores"] == split["scores"]
    assert (
        row["test_set"]["source_sha256"] == split["test_set"]["source_sha256"]
    )
    with pytest.raises(UserError, match="both a source and a target"):
        evaluate(finished, source_file=sides[0])


def test_averages_make_a_run_of_their_own(finished, tmp_path):
    content = average(finished, tmp_path / "mean", last=3)
    assert content["averaged_steps"] == [4, 5, 6]
    assert Translator.load(tmp_path / "mean").model.count_params() > 0
    with pytest.raises(UserError, match="7 are to be averaged"):
        average(finished, tmp_path / "more", last=7)
    assert not (tmp_path / "more").exists()
    with pytest.raises(UserError, match="exists already"):
        average(finished, tmp_path / "mean", last=2)


@pytest.mark.thorough
def test_two_averages_at_once_do_not_mix(finished, tmp_path, monkeypatch):
    expected = {
        last: average(finished, tmp_path / f"alone-{last}", last=last)
        for last in (2, 3)
    }
    mean, both_wrote = CheckpointStore.average, threading.Barrier(2)

    def average_and_wait(store, output, **options):
        steps = mean(store, output, **options)
        both_wrote.wait(20)
        return steps

    monkeypatch.setattr(CheckpointStore, "average", average_and_wait)
    with ThreadPoolExecutor(2) as pool:
        received = pool.map(
            lambda last: average(finished, tmp_path / f"{last}", last=last),
            expected,
        )
        for one, other in zip(expected.values(), received, strict=True):
            assert one["weights_sha256"] == other["weights_sha256"]
    assert not [p for p in finished.rglob(".*")]


def test_a_run_that_trains_is_not_averaged(finished, tmp_path):
    with RunFolder(finished).lock():
        with pytest.raises(UserError, match="another process is training"):
            average(finished, tmp_path / "mean", last=2)
    assert os.listdir(tmp_path) == []


def test_a_run_that_has_yet_to_finish_again_is_not_averaged(finished, tmp_path):
    run = RunFolder(finished)
    # As when it is given more updates, until it has made them.
    run.record(run.recipe())
    message = "whole: must be a finished run.*same `deepnmt train`"
    with pytest.raises(UserError, match=message):
        average(finished, tmp_path / "mean", last=2)
    assert os.listdir(tmp_path) == []


def test_a_run_broken_off_goes_on_as_if_it_had_never_stopped(
    finished, train_in, without_search, tmp_path, monkeypatch
):
    run_dir = tmp_path / "run"
    # Killed after a validation, before its checkpoint is complete.
    fails_at(monkeypatch, 3, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        train_in()
    assert CheckpointStore(run_dir / "checkpoints").latest() == 2
    assert len(RunFolder(run_dir).history()) == 1
    # Ctrl-C in the middle of an epoch.
    fails_at(monkeypatch, 5, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt) as info:
        train_in()
    assert "the checkpoint of step 5 is saved" in str(info.value)
    assert "Run the same command to continue" in str(info.value)
    train_in()
    assert_same_run(finished, run_dir)


@pytest.mark.thorough
def test_a_validation_broken_off_is_made_up_for(
    finished, train_in, tmp_path, monkeypatch
):
    interrupts = [KeyboardInterrupt()]

    def translate(self, texts):
        if interrupts:
            raise interrupts.pop()
        return list(texts)

    monkeypatch.setattr(Translator, "translate", translate)
    with pytest.raises(KeyboardInterrupt):
        train_in()
    run = RunFolder(tmp_path / "run")
    assert run.checkpoints().latest() == 3 and not run.history()
    train_in()
    assert_same_run(finished, tmp_path / "run")


def test_a_folder_of_another_recipe_is_refused(finished, recipe_file):
    key = "training.learning_rate.warmup_steps"
    recipe = load_recipe(recipe_file, {key: 11})
    with pytest.raises(UserError) as info:
        train(recipe, finished, quiet=True)
    message = str(info.value)
    assert f"`{key}` is 3 in this run and 11" in message
    assert "\n" not in message


@pytest.mark.thorough
def test_a_finished_run_goes_on_with_more_updates(
    finished, train_in, tmp_path, without_search
):
    run_dir = tmp_path / "run"
    assert train_in({"training.steps": 3})["steps"] == 3
    assert train_in()["steps"] == 6
    np.testing.assert_equal(final_weights(run_dir), final_weights(finished))
    assert RunFolder(run_dir).recipe().training.steps == 6
    with pytest.raises(UserError, match="6 updates are made already"):
        train_in({"training.steps": 5})


def test_a_folder_with_checkpoints_is_not_started_afresh(finished, recipe_file):
    with pytest.raises(UserError, match="checkpoints up to step 6"):
        train(recipe_file, finished, resume=False, quiet=True)


def test_a_folder_in_which_another_process_trains_is_refused(
    finished, recipe_file
):
    with RunFolder(finished).lock():
        with pytest.raises(UserError, match="another process is training"):
            train(recipe_file, finished, quiet=True)
    assert train(recipe_file, finished, quiet=True)["steps"] == 6


def test_an_unknown_preset_is_refused_before_anything_is_written(
    train_in, tmp_path
):
    with pytest.raises(UserError, match='Did you mean "transformer_tiny"'):
        train_in({"model.preset": "transfomer_tiny"})
    assert not (tmp_path / "run").exists()


def test_an_override_the_model_does_not_know_is_refused(train_in):
    said = "num_haeds` is not an argument of .*`num_heads`"
    with pytest.raises(UserError, match=said):
        train_in({"model.overrides.num_haeds": 2})


@pytest.mark.thorough
def test_a_full_disk_is_told_in_one_line_and_keeps_the_last_checkpoint(
    train_in, without_search, tmp_path, monkeypatch
):
    savez, calls = np.savez, []

    def full(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        savez(*arguments)

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(UserError, match="disk is full; step 2 is kept") as info:
        train_in()
    assert "\n" not in str(info.value)
    assert CheckpointStore(tmp_path / "run/checkpoints").latest() == 2
    assert not (tmp_path / "run/run.json").exists()


@pytest.mark.thorough
def test_early_stopping_ends_the_run_and_stays_ended(
    train_in, without_search, tmp_path, monkeypatch
):
    # A rate so small that the score never changes.
    changes = {
        "training.learning_rate.peak": 1e-12,
        "training.early_stopping_patience": 1,
        "training.steps": 30,
        "training.checkpoint_every": 4,
    }
    finish = "keras_deepnmt.runs.finish.final_model"
    with monkeypatch.context() as patch:
        patch.setattr(finish, None)
        with pytest.raises(TypeError):
            train_in(changes)
    assert CheckpointStore(tmp_path / "run/checkpoints").steps()[-1] == 6
    monkeypatch.setattr(TrainingLoop, "_fit", None)
    run = train_in(changes)
    assert run["steps"] == 6


def test_early_stopping_without_a_validation_set_is_refused(
    recipe_file, tmp_path
):
    recipe = load_recipe(
        recipe_file,
        {"training.early_stopping_patience": 1, "data.valid": None},
    )
    with pytest.raises(UserError, match="needs a validation set"):
        train(recipe, tmp_path / "run", quiet=True)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_trains_and_keeps_float32_weights(
    dtype, train_in, tmp_path
):
    run = train_in(
        {
            "training.precision": dtype,
            "training.steps": 2,
            "training.optimizer.global_clipnorm": 1.0,
            "data.valid": None,
        },
        prepared_dir=None,
    )
    assert run["steps"] == 2 and run["valid"] == {}
    config = json.loads((tmp_path / "run/model/config.json").read_text())
    assert dtype in json.dumps(config)
    translator = Translator.load(tmp_path / "run", compiled=False)
    assert len(translator.translate(["a b", "c"])) == 2
    model = translator.model
    assert all(weight.dtype == "float32" for weight in model.trainable_weights)


@pytest.mark.thorough
def test_a_batch_of_another_shape_ends_the_run_and_keeps_its_checkpoints(
    train_in, without_search, tmp_path, monkeypatch
):
    def wider(shape, pairs):
        inputs, labels = make_batch(shape, pairs)
        pad = [(0, 0), (0, 1)]
        source_ids = np.pad(inputs["source_ids"], pad)
        return {**inputs, "source_ids": source_ids}, labels

    assert train_in({"training.steps": 3})["steps"] == 3
    monkeypatch.setattr(
        "keras_deepnmt.data.batches.batch_source.make_batch", wider
    )
    said = "not one of the 2 planned shapes"
    with pytest.raises(UserError, match=said) as info:
        train_in()
    assert "\n" not in str(info.value)
    assert CheckpointStore(tmp_path / "run/checkpoints").latest() == 3


@pytest.mark.parametrize(
    "start, total, every", [(0, 7, 3), (4, 23, 5), (3, 6, 3)]
)
def test_stretches_cover_every_update_once(start, total, every):
    ends, step = [], start
    for stretch in split_into_epochs(start, total, every):
        assert stretch.start_step == step
        for epoch in range(stretch.first_epoch, stretch.last_epoch):
            assert epoch == step // every
            step += stretch.steps_per_epoch
            ends.append(step)
    assert step == total
    assert all(end % every == 0 or end == total for end in ends)
