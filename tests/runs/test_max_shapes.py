"""What must be true of a run whose recipe leaves `max_shapes` out.

* its number of batch shapes follows the number of updates and is recorded
* it stays the same when the run is resumed, or extended to more updates
* a run that was started with another number keeps that
* validation has the shapes of training, or of the parts of a batch
"""

import numpy as np
import pytest

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs.build import plan_batches, plan_validation
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import settle_recipe


@pytest.fixture
def recipe_of(recipe_file):
    def load(steps, max_shapes=None):
        return load_recipe(
            recipe_file,
            {"training.steps": steps, "training.max_shapes": max_shapes},
        )

    return load


@pytest.fixture(scope="module")
def data(prepared_dir):
    return PreparedData(prepared_dir)


def start(run, recipe):
    """Records a run as `train` does, without training."""
    recipe = settle_recipe(recipe, run)
    run.check_startable(recipe)
    run.directory.mkdir(parents=True, exist_ok=True)
    if run.recipe_file.is_file():
        run.begin(recipe, run.directory)
    else:
        save_recipe(recipe, run.recipe_file, {})
    return recipe


def test_a_short_run_compiles_few_shapes_and_keeps_them_when_extended(
    recipe_of, data, tmp_path
):
    run = RunFolder(tmp_path / "run")
    short = plan_batches(start(run, recipe_of(60)), data)
    assert len(short.batch_shapes) == 1
    assert run.recipe().training.max_shapes == 1
    for steps in (60, 100_000, 100_000):
        longer = plan_batches(start(run, recipe_of(steps)), data)
        assert longer.batch_shapes == short.batch_shapes
        for step in (0, 61, 1_000):
            np.testing.assert_array_equal(
                longer.batch(step)[1], short.batch(step)[1]
            )
    afresh = start(RunFolder(tmp_path / "other"), recipe_of(100_000))
    assert afresh.training.max_shapes == 16


def test_a_run_recorded_with_eight_shapes_keeps_them(recipe_of, tmp_path):
    run = RunFolder(tmp_path)
    save_recipe(recipe_of(60, max_shapes=8), run.recipe_file, {})
    assert start(run, recipe_of(60)).training.max_shapes == 8
    assert start(run, recipe_of(90)).training.max_shapes == 8
    assert run.recipe().training.max_shapes == 8
    seal = run.checkpoints().path(1) / "checkpoint.json"
    seal.parent.mkdir(parents=True)
    seal.write_text("{}")
    with pytest.raises(UserError, match="`training.max_shapes` is 8 in this"):
        start(run, recipe_of(60, max_shapes=2))


@pytest.mark.thorough
def test_a_trained_run_records_its_number(train_in, without_search, tmp_path):
    train_in({"training.steps": 1, "training.max_shapes": None})
    assert RunFolder(tmp_path / "run").recipe().training.max_shapes == 1
    assert train_in({"training.steps": 2, "training.max_shapes": None})


def test_validation_has_the_shapes_of_the_parts_of_a_batch(recipe_file, data):
    changes = {
        "training.gradient_accumulation_steps": 2,
        "training.max_shapes": 4,
    }
    recipe = load_recipe(recipe_file, changes)
    plan = plan_batches(recipe, data)
    shapes = plan_validation(recipe, data, plan).batch_shapes
    for shape, whole in zip(shapes, plan.batch_shapes, strict=True):
        assert shape.row_tokens == whole.row_tokens
        # An even number: `fit` makes the rows a multiple of the parts.
        rows = shape.batch_size
        assert rows % 2 == 0 and rows <= max(2, whole.batch_size // 2)
    compiled = load_recipe(
        recipe_file, changes | {"training.jit_compile": True}
    )
    assert len(plan_validation(compiled, data, plan).batch_shapes) == 1
