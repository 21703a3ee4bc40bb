"""What must be true of runs that begin with other weights, or freeze some.

* shared weights begin with the other run's, frozen ones stay so
* the source's hash is recorded; shared and frozen weights are reported
* an interrupted run continues from its checkpoint, and ends bit-identical
* a source that trains again gives a checkpoint, and not its earlier model
* a source with other tokenizers, without weights, or changed is refused
"""

import shutil

import numpy as np
import pytest
import yaml
from broken_runs import arrays, checkpoint, fails_at, interrupt_after

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.initial_weights import find_initial_weights
from keras_deepnmt.runs.run_folder import RunFolder


@pytest.fixture
def changes(finished_run):
    return {
        "training.steps": 2,
        "training.initialize_from": str(finished_run),
        "training.freeze": ["encoder_block_1/*", "*embeddings"],
        "model.overrides.num_encoder_layers": 2,
    }


@pytest.mark.thorough
def test_a_run_begins_with_anothers_weights_and_keeps_the_frozen_ones(
    finished_run, changes, train_in, without_search, tmp_path, capsys
):
    folder = tmp_path / "run"
    train_in(changes, quiet=False)
    said = capsys.readouterr().err
    assert "Initialized: shared 40 weights" in said
    assert "16 weights are frozen: " in said
    theirs = arrays(finished_run / "model" / "model.weights.h5")
    ours = arrays(folder / "model" / "model.weights.h5")
    equal = {n for n in theirs if np.array_equal(theirs[n], ours[n])}
    moved = theirs.keys() - equal
    assert len(equal) == 16 and len(moved) == 24
    # Two updates at a small rate: near the source, far from a fresh start.
    for name in moved:
        np.testing.assert_allclose(ours[name], theirs[name], atol=0.03)
    resolved = RunFolder(folder).recipe().resolved["initialize_from"]
    assert (
        resolved["weights_sha256"]
        == (RunFolder(finished_run).read_summary()["weights_sha256"])
    )


@pytest.mark.thorough
def test_broken_off_before_and_after_a_checkpoint_it_ends_bit_identical(
    changes, train_in, without_search, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "run"
    fails_at(monkeypatch, 1, RuntimeError("killed before any checkpoint"))
    fails_at(monkeypatch, 2, RuntimeError("killed"))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="killed"):
            train_in(changes, quiet=False)
    said = capsys.readouterr().err
    assert said.count("Initialized: shared 40 weights") == 2
    assert "16 weights are frozen: " in said
    train_in(changes, quiet=False)
    said = capsys.readouterr().err
    assert "Initialized" not in said and "Resuming at update 1" in said
    broken = checkpoint(folder, 2)
    shutil.rmtree(folder)
    train_in(changes)
    for name, value in checkpoint(folder, 2).items():
        np.testing.assert_array_equal(value, broken[name], err_msg=name)


def test_an_unfinished_run_gives_its_newest_checkpoint(
    finished_run, changes, recipe_file, prepared_dir, tmp_path
):
    shutil.copytree(finished_run, tmp_path / "unfinished")
    (tmp_path / "unfinished/run.json").unlink()
    changes["training.initialize_from"] = str(tmp_path / "unfinished")
    found = find_initial_weights(
        load_recipe(recipe_file, changes), PreparedData(prepared_dir)
    )
    assert "step-00000006/model.weights.h5" in found["weights"]
    shutil.rmtree(tmp_path / "unfinished/checkpoints")
    with pytest.raises(UserError, match="no weights yet. Train it"):
        find_initial_weights(
            load_recipe(recipe_file, changes), PreparedData(prepared_dir)
        )


@pytest.mark.thorough
def test_a_run_that_trains_again_gives_its_newest_checkpoint(
    finished_run,
    changes,
    recipe_file,
    prepared_dir,
    train_in,
    without_search,
    tmp_path,
    monkeypatch,
):
    shutil.copytree(finished_run, tmp_path / "run")
    interrupt_after(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        train_in(restart=True)
    changes["training.initialize_from"] = str(tmp_path / "run")
    recipe = load_recipe(recipe_file, changes)
    found = find_initial_weights(recipe, PreparedData(prepared_dir))
    newest = tmp_path / "run/checkpoints/step-00000002/model.weights.h5"
    assert found["weights"] == str(newest)


def test_a_source_with_other_tokenizers_is_refused(
    finished_run, changes, train_in, tmp_path
):
    shutil.copytree(finished_run, tmp_path / "other")
    file = tmp_path / "other/recipe.yaml"
    content = yaml.safe_load(file.read_text())
    content["resolved"]["tokenizer"]["target"] = "0" * 64
    file.write_text(yaml.safe_dump(content))
    changes["training.initialize_from"] = str(tmp_path / "other")
    with pytest.raises(UserError, match="tokenizers are not those of"):
        train_in(changes)
    changes["training.initialize_from"] = str(tmp_path / "nowhere")
    with pytest.raises(UserError, match="nowhere: not a run folder"):
        train_in(changes)
    assert not (tmp_path / "run/recipe.yaml").exists()


@pytest.mark.thorough
def test_a_source_that_has_changed_before_the_first_checkpoint_is_refused(
    finished_run, changes, train_in, without_search, tmp_path, monkeypatch
):
    shutil.copytree(finished_run, tmp_path / "changing")
    changes["training.initialize_from"] = str(tmp_path / "changing")
    fails_at(monkeypatch, 1, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        train_in(changes)
    file = tmp_path / "changing/model/model.weights.h5"
    file.write_bytes(file.read_bytes() + b"0")
    with pytest.raises(UserError, match="no longer those"):
        train_in(changes)


def test_a_pattern_that_matches_nothing_is_refused(train_in):
    with pytest.raises(UserError, match='nearest is "encoder_block_1/'):
        train_in({"training.freeze": ["encoder_block_1/attention/kye/*"]})
