"""A start that is refused leaves everything as it was.

* a folder made for it is deleted, one that was there keeps what it had
* the corrected command then works in the same folder
* other prepared data than at the start are refused, and both are named
* damaged checkpoints stop a run; `restart` begins again, and the finished model
  stays until the new one is complete
"""

import json
import shutil

import pytest
from broken_runs import fails_at

from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.translator import Translator

MISTYPED = {"model.overrides.encoder_self_atention": "x"}
SHORT = {"training.steps": 1, "training.validate_every": 1, "data.valid": None}


@pytest.fixture(scope="module")
def finished(recipe_file, prepared_dir, tmp_path_factory):
    """A run of two updates without validation."""
    run_dir = tmp_path_factory.mktemp("runs") / "finished"
    recipe = load_recipe(recipe_file, {**SHORT, "training.steps": 2})
    train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


@pytest.fixture
def run_dir(finished, tmp_path):
    """A copy of the finished run, to be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def prepared_copy(prepared_dir, tmp_path):
    return shutil.copytree(prepared_dir, tmp_path / "copy")


def contents(folder):
    return {
        str(path.relative_to(folder)): path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
    }


def damage(run_dir):
    """Changes one byte of every checkpoint's weights."""
    store = RunFolder(run_dir).checkpoints()
    for step in store.steps():
        file = store.path(step) / "model.weights.h5"
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)


def truncate_shard(prepared):
    shard = next(prepared.glob("train-*.array_record"))
    shard.write_bytes(shard.read_bytes()[:-100])


def shrink_vocabulary(prepared):
    manifest = prepared / "manifest.json"
    content = json.loads(manifest.read_text())
    content["source_vocabulary_size"] = content["target_vocabulary_size"] = 9
    manifest.write_text(json.dumps(content))


def fail_to_read(prepared):
    (prepared / "read-fails").touch()


@pytest.fixture
def failing_reads(monkeypatch):
    """Makes the pairs of a folder marked by `fail_to_read` unreadable."""
    read = PairStore.read

    def fail(store, rows):
        if (store.directory / "read-fails").exists():
            raise UserError(f"{store.directory}, record 3: damaged.")
        return read(store, rows)

    monkeypatch.setattr(PairStore, "read", fail)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "spoil", "said"),
    [
        (MISTYPED, None, "encoder_self_atention"),
        (SHORT, truncate_shard, "deepnmt prepare` again"),
        (SHORT, shutil.rmtree, "not a prepared corpus"),
        (SHORT, shrink_vocabulary, "vocabulary"),
        (SHORT, fail_to_read, "record 3: damaged"),
        ({"training.early_stopping_patience": 1}, None, "validation set"),
    ],
    ids=["override", "shard", "missing", "sizes", "first batch", "patience"],
)
def test_a_refused_start_leaves_nothing(
    changes, spoil, said, recipe_file, prepared_copy, tmp_path, failing_reads
):
    if spoil is not None:
        spoil(prepared_copy)
    if "validation" in said:
        shutil.rmtree(prepared_copy)
        changes = {**changes, "data.valid": None}
    recipe = load_recipe(recipe_file, changes)
    options = {"prepared_dir": prepared_copy, "quiet": True}
    if "validation" in said:
        options["prepared_dir"] = None
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ValueError, match=said):
        train(recipe, tmp_path / "new" / "run", **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    # A folder of the user's own stays, with what is in it.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note").write_text("mine")
    with pytest.raises(ValueError, match=said):
        train(recipe, tmp_path / "mine", **options)
    assert contents(tmp_path / "mine") == {"note": b"mine"}


def test_a_mistyped_override_is_refused_before_the_data_are_prepared(
    train_in, tmp_path, monkeypatch
):
    monkeypatch.setattr("keras_deepnmt.runs.start.prepare_corpus", None)
    with pytest.raises(UserError, match="encoder_self_atention"):
        train_in(MISTYPED, prepared_dir=None)
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_the_corrected_command_works_in_the_same_folder(train_in, tmp_path):
    with pytest.raises(UserError, match="encoder_self_atention"):
        train_in({**SHORT, **MISTYPED})
    assert train_in(SHORT)["steps"] == 1


def test_a_finished_run_stays_finished_if_more_updates_are_refused(
    run_dir, recipe_file, tmp_path
):
    before = contents(run_dir)
    recipe = load_recipe(recipe_file, {**SHORT, "training.steps": 3})
    with pytest.raises(UserError, match="nowhere"):
        train(recipe, run_dir, prepared_dir=tmp_path / "nowhere", quiet=True)
    assert contents(run_dir) == before


@pytest.mark.thorough
def test_other_prepared_data_are_refused_and_both_folders_named(
    run_dir, recipe_file, prepared_dir, prepared_copy
):
    manifest = json.loads((prepared_copy / "manifest.json").read_text())
    # The same tokenizers, other text.
    manifest["corpora"][-1]["sha256"]["source"] = "0" * 64
    (prepared_copy / "manifest.json").write_text(json.dumps(manifest))
    before = contents(run_dir)
    # Also if nothing is left to do.
    for steps in (2, 3):
        recipe = load_recipe(recipe_file, {**SHORT, "training.steps": steps})
        with pytest.raises(UserError, match="other prepared data") as info:
            train(recipe, run_dir, prepared_dir=prepared_copy, quiet=True)
        assert str(prepared_copy) in str(info.value)
        assert str(prepared_dir) in str(info.value)
        assert "\n" not in str(info.value)
        assert contents(run_dir) == before


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "callbacks", "said"),
    [
        ({"training.temperature": {}}, (), "Leave `training.temperature`"),
        (
            {"training.callbacks": [{"keras.callbacks.CSVLogger": {"a": 1}}]},
            (),
            "CSVLogger",
        ),
        ({}, (print,), "must hold `keras.callbacks.Callback`"),
    ],
    ids=["temperature", "arguments", "no callback"],
)
@pytest.mark.parametrize("restart", [True, False])
def test_a_run_stays_as_it_was_if_its_restart_is_refused(
    run_dir, recipe_file, prepared_dir, changes, callbacks, said, restart
):
    before = contents(run_dir)
    changes = {**SHORT, "training.steps": 3, **changes}
    recipe = load_recipe(recipe_file, changes)
    options = {"prepared_dir": prepared_dir, "allow_changes": not restart}
    with pytest.raises(UserError, match=said):
        train(
            recipe,
            run_dir,
            restart=restart,
            callbacks=callbacks,
            quiet=True,
            **options,
        )
    assert contents(run_dir) == before


@pytest.fixture
def run_with_data(finished_run, prepared_dir, tmp_path):
    """A finished run whose data are in its folder."""
    run = RunFolder(shutil.copytree(finished_run, tmp_path / "run"))
    shutil.copytree(prepared_dir, run.data_dir)
    return run


def test_a_run_keeps_its_data_if_its_restart_is_refused(
    run_with_data, recipe_file
):
    before = contents(run_with_data.directory)
    refused = {"data.max_length": 8, "training.initialize_from": "nowhere"}
    recipe = load_recipe(recipe_file, refused)
    with pytest.raises(UserError, match="nowhere"):
        train(recipe, run_with_data.directory, restart=True, quiet=True)
    assert contents(run_with_data.directory) == before


def test_data_that_a_killed_restart_replaced_come_back(run_with_data):
    run = run_with_data
    before = contents(run.directory)
    new = run.directory / "data.new"

    def replace_data():
        shutil.copytree(run.data_dir, new)
        with open(new / "manifest.json", "a") as file:
            file.write("\n")
        run.replace_data(new)

    replace_data()
    assert contents(run.directory) != before
    with run.opened():
        assert contents(run.directory) == before
    # Killed after the restart was recorded, it goes on.
    replace_data()
    resolved = run.recipe().resolved
    resolved["manifest_sha256"] = file_sha256(run.data_dir / "manifest.json")
    save_recipe(run.recipe(), run.recipe_file, resolved)
    with run.opened():
        after = contents(run.directory)
    assert after.keys() == before.keys()
    assert after["data/manifest.json"] == before["data/manifest.json"] + b"\n"


def test_a_restart_killed_while_it_deletes_leaves_no_finished_run(
    run_with_data, recipe_file, monkeypatch
):
    def killed(path):
        raise RuntimeError("killed")

    monkeypatch.setattr("keras_deepnmt.runs.run_folder._delete", killed)
    run, old = run_with_data, run_with_data.recipe()
    assert run.is_finished()
    with pytest.raises(RuntimeError, match="killed"):
        run.begin(
            load_recipe(recipe_file, {"seed": 11}), run.data_dir, restart=True
        )
    assert not run.is_finished()
    # The checkpoints that are left are those of the old recipe.
    assert run.recipe() == old


def killed(loop):
    raise RuntimeError("killed")


@pytest.mark.thorough
@pytest.mark.parametrize("has_ended", [True, False])
def test_damaged_checkpoints_stop_a_run(
    run_dir, recipe_file, prepared_dir, has_ended
):
    damage(run_dir)
    if not has_ended:
        (run_dir / "run.json").unlink()
    before = contents(run_dir)
    recipe = load_recipe(recipe_file, {**SHORT, "training.steps": 3})
    with pytest.raises(UserError, match="damaged.*--restart") as info:
        train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    assert "before it" not in str(info.value)
    assert contents(run_dir) == before


def test_a_finished_run_without_checkpoints_is_not_begun_again(
    run_dir, recipe_file, prepared_dir
):
    shutil.rmtree(run_dir / "checkpoints")
    before = contents(run_dir)
    recipe = load_recipe(recipe_file, {**SHORT, "training.steps": 3})
    with pytest.raises(UserError, match="without a checkpoint.*--restart"):
        train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    assert contents(run_dir) == before


@pytest.mark.thorough
def test_restart_begins_again_and_replaces_the_model_at_the_end(
    run_dir, recipe_file, prepared_dir, monkeypatch
):
    damage(run_dir)
    run, before = RunFolder(run_dir), contents(run_dir)
    run.scores_file.write_text("{}")
    recipe = load_recipe(recipe_file, {**SHORT, "seed": 11})
    options = {"prepared_dir": prepared_dir, "quiet": True}
    # Refused: nothing was deleted.
    mistyped = load_recipe(recipe_file, {**SHORT, **MISTYPED})
    with pytest.raises(UserError, match="encoder_self_atention"):
        train(mistyped, run_dir, restart=True, **options)
    run.scores_file.unlink()
    assert contents(run_dir) == before
    run.scores_file.write_text("{}")
    # Killed before its first checkpoint: the same run goes on without restart.
    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "run", killed)
        for restart in (True, False):
            with pytest.raises(RuntimeError, match="killed"):
                train(recipe, run_dir, restart=restart, **options)
    # Interrupted: the old model still translates, the run goes on.
    fails_at(monkeypatch, 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match="without `--restart`"):
        train(recipe, run_dir, restart=True, **options)
    old = json.loads(before["run.json"])
    assert run.read_summary() == old
    assert Translator.load(run_dir).model.count_params()
    assert CheckpointStore(run_dir / "checkpoints").steps() == [1]
    assert not run.scores_file.exists() and run.recipe().seed == 11
    new = train(recipe, run_dir, **options)
    assert new["steps"] == 1 and new["seed"] == 11
    assert run.read_summary() == new
    assert new["weights_sha256"] != old["weights_sha256"]
    assert [logs["step"] for _, logs in run.history()] == [1]
    assert Translator.load(run_dir).model.count_params()
    # It is finished, and has no trace of the restart.
    assert train(recipe, run_dir, **options) == new
    assert not [key for key in run.recipe().resolved if "replaces" in key]


@pytest.mark.thorough
def test_restart_prepares_other_data_anew(recipe_file, tmp_path, monkeypatch):
    recipe = load_recipe(recipe_file, SHORT)
    train(recipe, tmp_path / "run", quiet=True)
    other = load_recipe(recipe_file, {**SHORT, "data.max_length": 8})
    with pytest.raises(UserError, match="data.max_length"):
        train(other, tmp_path / "run", quiet=True)
    train(other, tmp_path / "run", restart=True, quiet=True)
    manifest = json.loads((tmp_path / "run/data/manifest.json").read_text())
    assert manifest["options"]["max_length"] == 8
