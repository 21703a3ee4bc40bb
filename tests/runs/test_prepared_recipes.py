"""A run on a prepared folder records the data that it uses.

* the recipe needs no section `data` and no name
* a held-out set that is used is recorded, and may be added to the recipe later
* other values in the recipe are reported
* evaluation takes the data that were recorded, or none
"""

import shutil

import pytest
import yaml

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256
from keras_deepnmt.recipes.loading import (
    load_recipe,
    prepared_data_options,
    save_recipe,
)
from keras_deepnmt.runs.evaluate import open_data
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train


class Begun(Exception):
    """Ends a run at its first update."""


@pytest.fixture
def start_in(prepared_dir, tmp_path, monkeypatch):
    """Starts a run up to its first update and returns its recipe."""

    def begin(self):
        raise Begun

    monkeypatch.setattr(TrainingLoop, "run", begin)

    def start(recipe, quiet=True):
        with pytest.raises(Begun):
            train(
                recipe, tmp_path / "run", prepared_dir=prepared_dir, quiet=quiet
            )
        return RunFolder(tmp_path / "run").recipe()

    return start


@pytest.fixture
def short_recipe(recipe_file, tmp_path):
    """A recipe with neither a name nor data."""
    content = yaml.safe_load(recipe_file.read_text(encoding="utf-8"))
    del content["name"], content["data"]
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def test_a_recipe_needs_no_name_and_no_data_with_a_prepared_folder(
    start_in, short_recipe, recipe_file, prepared_dir
):
    with pytest.raises(UserError, match="`data` is missing"):
        load_recipe(short_recipe)
    recorded = start_in(short_recipe)
    assert recorded.name == "short"
    assert recorded.data == load_recipe(recipe_file).data
    assert recorded.data == prepared_data_options(prepared_dir)


def test_a_held_out_set_that_is_used_is_recorded_and_may_be_added_later(
    start_in, recipe_file
):
    changes = {"data.valid": None, "data.test": None}
    recorded = start_in(load_recipe(recipe_file, changes))
    whole = load_recipe(recipe_file)
    assert recorded.data.valid == whole.data.valid is not None
    assert recorded.data.test == whole.data.test is not None
    assert start_in(whole) == recorded
    assert start_in(load_recipe(recipe_file, changes)) == recorded


def test_a_run_that_recorded_no_held_out_set_is_continued(
    start_in, recipe_file, tmp_path
):
    whole = load_recipe(recipe_file)
    resolved = start_in(whole).resolved
    older = load_recipe(recipe_file, {"data.valid": None})
    save_recipe(older, tmp_path / "run" / "recipe.yaml", resolved)
    assert start_in(whole) == whole
    assert RunFolder(tmp_path / "run").recipe().resolved == resolved


def test_data_of_the_recipe_that_are_not_used_are_told(
    start_in, recipe_file, capsys, prepared_dir
):
    start_in(load_recipe(recipe_file, {"data.max_length": 99}), quiet=False)
    said = capsys.readouterr().err
    assert f"{prepared_dir}: was prepared with other values" in said
    assert "of data.max_length than the recipe's; its own are used" in said


def test_a_folder_that_is_not_prepared_leaves_no_run(short_recipe, tmp_path):
    with pytest.raises(UserError, match="not a prepared corpus"):
        train(short_recipe, tmp_path / "new", prepared_dir=tmp_path / "none")
    assert not (tmp_path / "new").exists()


def test_evaluation_takes_the_data_that_were_recorded(
    recipe_file, prepared_dir, tmp_path
):
    """They were `runs/demo/data`, where another run has prepared its own."""
    run, other = RunFolder(tmp_path / "demo-old"), tmp_path / "demo" / "data"
    shutil.copytree(prepared_dir, run.data_dir)
    shutil.copytree(prepared_dir, other)
    manifest = other / "manifest.json"
    resolved = {
        "prepared": str(other),
        "manifest_sha256": file_sha256(manifest),
    }
    save_recipe(load_recipe(recipe_file), run.recipe_file, resolved)
    assert open_data(run, None).directory == other
    manifest.write_text(f"{manifest.read_text()}\n")
    assert open_data(run, None).directory == run.data_dir
    shutil.rmtree(run.data_dir)
    with pytest.raises(UserError, match="other prepared data.*--prepared"):
        open_data(run, None)
    assert open_data(run, prepared_dir).directory == prepared_dir
    # Earlier versions have recorded no hash.
    save_recipe(load_recipe(recipe_file), run.recipe_file, {})
    with pytest.raises(UserError, match="not a prepared corpus"):
        open_data(run, None)
    save_recipe(
        load_recipe(recipe_file), run.recipe_file, {"prepared": str(other)}
    )
    assert open_data(run, None).directory == other
