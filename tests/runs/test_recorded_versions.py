"""What must be true of the versions that a run records.

* A new run records those of the presets and of the batch shapes.
* A run with another one, or none, is not resumed, translated or evaluated: the
  same names could mean another model, or other batches.
"""

import dataclasses
import json

import pytest

from keras_deepnmt.data.batches.batch_shapes import BATCH_SHAPES_VERSION
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs.build import build_model
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.translator.loading import read_run
from keras_deepnmt.zoo.registry import PRESET_VERSION

SIZES = {"source_vocabulary_size": 13, "target_vocabulary_size": 13}
RECORDED = {
    "preset_version": PRESET_VERSION,
    "batch_shapes_version": BATCH_SHAPES_VERSION,
}


@pytest.mark.parametrize("version", [None, PRESET_VERSION - 1, 99])
def test_the_model_of_another_version_of_the_presets_is_refused(
    recipe_file, version
):
    recipe = load_recipe(recipe_file)
    recorded = {"commit": "unknown", "preset_version": version}
    with pytest.raises(UserError, match=f"must be 2.*Received: {version}"):
        build_model(dataclasses.replace(recipe, resolved=recorded), SIZES)


@pytest.mark.parametrize(
    "recorded, named",
    [
        ({"commit": "unknown"}, "the version of the presets must be 2"),
        (RECORDED | {"preset_version": 1}, "the version of the presets must"),
        (RECORDED | {"batch_shapes_version": 1}, "batch_shapes_version` must"),
        ({"preset_version": 2}, "batch_shapes_version` must"),
        (RECORDED, None),
    ],
)
def test_a_run_of_other_versions_is_not_resumed(
    recipe_file, tmp_path, recorded, named
):
    recipe, run = load_recipe(recipe_file), RunFolder(tmp_path)
    save_recipe(recipe, run.recipe_file, recorded)
    if named is None:
        run.check_startable(recipe)
        return
    with pytest.raises(UserError, match=named):
        run.check_startable(recipe)
    run.check_startable(recipe, restart=True)


@pytest.mark.thorough
def test_a_new_run_records_both_and_only_with_them_it_translates(
    train_in, without_search, tmp_path
):
    train_in({"training.steps": 1})
    run = RunFolder(tmp_path / "run")
    resolved = run.recipe().resolved
    assert {name: resolved[name] for name in RECORDED} == RECORDED
    summary = run.read_summary()
    read_run(run.directory).build_model()
    del summary["preset_version"]
    run.run_file.write_text(json.dumps(summary))
    with pytest.raises(UserError, match="run.json: the version of the presets"):
        read_run(run.directory).build_model()
