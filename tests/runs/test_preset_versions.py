"""What must be true of runs that were started by an earlier version.

* Their model is the one that the preset's name stood for then.
* Their batches are those that were chosen then.
* A new run records both versions; a dry run of an earlier run has its versions.
"""

import dataclasses

import pytest

from keras_deepnmt.data.batches.batch_shapes import BATCH_SHAPES_VERSION
from keras_deepnmt.data.batches.earlier_shape_search import (
    choose_earlier_batch_shapes,
)
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs import dry_run as module
from keras_deepnmt.runs.build import build_model, plan_batches, preset_version
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.zoo.registry import PRESET_VERSION

SIZES = {"source_vocabulary_size": 13, "target_vocabulary_size": 13}
SMALL = {
    "model.preset": "transformer_small",
    "model.overrides": dict(
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
    ),
}


@pytest.fixture
def recipe(recipe_file):
    return load_recipe(recipe_file, SMALL)


@pytest.mark.parametrize(
    "resolved, version, is_shared",
    [
        ({}, PRESET_VERSION, True),
        # What runs of the first version recorded.
        ({"versions": {"keras": "3"}}, 1, False),
        ({"preset_version": 1}, 1, False),
        ({"preset_version": 2}, 2, True),
    ],
)
def test_a_run_keeps_the_model_it_was_started_with(
    recipe, resolved, version, is_shared
):
    recipe = dataclasses.replace(recipe, resolved=resolved)
    assert preset_version(recipe) == version
    model = build_model(recipe, SIZES)
    shares = model.source_embedding is model.target_embedding
    assert shares == is_shared


@pytest.mark.parametrize(
    "resolved, is_earlier",
    [
        ({}, False),
        # What runs recorded before the version was.
        ({"preset_version": 2}, True),
        ({"batch_shapes_version": 1}, True),
        ({"batch_shapes_version": 2}, False),
    ],
)
def test_a_run_keeps_the_batches_it_was_started_with(
    recipe_file, prepared_dir, resolved, is_earlier
):
    data = PreparedData(prepared_dir)
    recipe = load_recipe(recipe_file, {"training.max_shapes": 5})
    shapes = plan_batches(
        dataclasses.replace(recipe, resolved=resolved), data
    ).batch_shapes
    training = recipe.training
    earlier = choose_earlier_batch_shapes(
        data.store("train").lengths, training.batch_tokens, training.max_shapes
    )
    assert (shapes == earlier) == is_earlier


def test_a_new_run_records_both_versions(train_in, without_search, tmp_path):
    train_in({"training.steps": 1})
    resolved = RunFolder(tmp_path / "run").recipe().resolved
    assert resolved["preset_version"] == PRESET_VERSION
    assert resolved["batch_shapes_version"] == BATCH_SHAPES_VERSION


def test_a_dry_run_of_an_earlier_run_has_its_versions(
    recipe_file, prepared_dir, tmp_path, monkeypatch
):
    class PlannedError(Exception):
        pass

    def plan(recipe, data, num_replicas):
        raise PlannedError(recipe.resolved)

    monkeypatch.setattr(module, "plan_batches", plan)
    recipe = load_recipe(recipe_file)
    for recorded, versions in (
        ({"commit": "unknown"}, (1, 1)),
        (
            {"preset_version": 2, "batch_shapes_version": 2},
            (2, 2),
        ),
        (None, (PRESET_VERSION, BATCH_SHAPES_VERSION)),
    ):
        run = RunFolder(tmp_path / str(versions) / str(recorded is None))
        if recorded is not None:
            run.directory.mkdir(parents=True)
            save_recipe(recipe, run.recipe_file, recorded)
        with pytest.raises(PlannedError) as caught:
            module.dry_run(
                recipe, run.directory, prepared_dir=prepared_dir, quiet=True
            )
        resolved = caught.value.args[0]
        assert versions == (
            resolved["preset_version"],
            resolved["batch_shapes_version"],
        )
