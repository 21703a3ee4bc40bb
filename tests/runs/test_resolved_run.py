"""What must be true of the start of a run: its values are settled once.

* settling the recipe and resolving the run write nothing
* values that a recipe leaves open are numbers then; recipe.yaml keeps `auto`
* a resumed run has the recorded values; one that begins again does not
* the training gets the resolved values, none of which can be replaced
* the description tells the target tokens of an update, as weights draw them
"""

import dataclasses
import shutil

import numpy as np
import pytest

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs import batch_size
from keras_deepnmt.runs import train as module
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import (
    record_changes,
    resolve_run,
    settle_recipe,
)

OPEN = {
    "training.batch_tokens": "auto",
    "training.effective_batch_tokens": 90,
    "training.max_shapes": None,
    "training.steps": 400,
}


@pytest.fixture
def resolve(recipe_file, prepared_dir, tmp_path, monkeypatch):
    """Resolves a run in a folder of this test; a batch fits in three parts."""

    def trial(command, limit):
        parts = load_recipe(command[-2]).training.gradient_accumulation_steps
        return 7 if parts >= 3 else None

    monkeypatch.setattr(batch_size, "run_trial", trial)

    def run(changes=OPEN, restart=False):
        folder = RunFolder(tmp_path / "run")
        settled = settle_recipe(
            load_recipe(recipe_file, changes),
            folder,
            prepared_dir=prepared_dir,
            restart=restart,
        )
        data = PreparedData(prepared_dir)
        return resolve_run(settled, folder, data, restart=restart)

    return run


def test_what_is_open_becomes_a_number_and_nothing_is_written(
    resolve, tmp_path
):
    run = resolve()
    training, recorded = run.recipe.training, run.recorded.training
    assert training.max_shapes == recorded.max_shapes == 2
    assert training.batch_tokens == 90
    assert training.gradient_accumulation_steps == 3
    assert recorded.batch_tokens == "auto"
    assert run.recorded.resolved == run.recipe.resolved
    assert run.recipe.resolved["batch"]["gradient_accumulation_steps"] == 3
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_is_what_was_recorded(resolve, tmp_path, monkeypatch):
    first = resolve()
    first.folder.directory.mkdir()
    first.folder.begin(first.recorded, first.data.directory)
    monkeypatch.setattr(batch_size, "run_trial", None)
    longer = resolve(OPEN | {"training.steps": 100_000})
    assert longer.recipe.resolved == first.recipe.resolved
    training = longer.recipe.training
    assert training == dataclasses.replace(first.recipe.training, steps=100_000)


def test_a_resumed_run_records_where_its_data_are_now(
    resolve, prepared_dir, tmp_path
):
    first = resolve()
    first.folder.directory.mkdir()
    first.folder.begin(first.recorded, first.data.directory)
    moved = PreparedData(shutil.copytree(prepared_dir, tmp_path / "moved"))
    second = resolve_run(first.folder.recipe(), first.folder, moved)
    recorded = first.recorded.resolved | {"prepared": str(moved.directory)}
    assert second.recorded.resolved == recorded


def test_a_run_that_begins_again_is_worked_out_anew(resolve):
    first = resolve()
    first.folder.directory.mkdir()
    first.folder.begin(first.recorded, first.data.directory)
    longer = resolve(OPEN | {"training.steps": 100_000}, restart=True)
    assert longer.restart and longer.recipe.training.max_shapes == 16


def test_the_training_gets_what_was_resolved(train_in, monkeypatch):
    class Reached(Exception):
        pass

    made = []

    def recorded(*arguments, **options):
        made.append(record_changes(*arguments, **options))
        return made[-1]

    def loop(run, *arguments):
        made.append(run)
        raise Reached

    monkeypatch.setattr(module, "record_changes", recorded)
    monkeypatch.setattr(module, "TrainingLoop", loop)
    with pytest.raises(Reached):
        train_in()
    run, received = made
    assert received is run
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.recipe = None
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.recipe.seed = 1


def test_the_tokens_of_an_update_count_pairs_as_often_as_they_are_drawn(
    resolve,
):
    run = resolve()
    store = run.data.store("train")
    # Two corpora, of which one is drawn three times.
    weights = np.where(np.arange(len(store)) < 100, 3, 1)
    plan = BatchPlan(store.lengths, [BatchShape(7, 16, 16)], weights=weights)
    drawn = [plan.batch(n)[1] for n in range(plan.batches_per_epoch)]
    tokens = np.mean([store.lengths[rows, 1].sum() for rows in drawn])
    assert f"updates of {tokens:,.0f} target tokens" in run.describe(plan)
