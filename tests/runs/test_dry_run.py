"""What must be true of `deepnmt train --dry-run`.

* it reports batch shapes, parameters, memory and times, and how they were found
* it writes nothing where the run will be
* it refuses what the run would refuse before its first update
"""

import shutil

import pytest
from uncompiled_models import eager_updates

from keras_deepnmt.cli import main
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.build import build_model
from keras_deepnmt.runs.dry_run import dry_run
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train


def stop(loop):
    raise KeyboardInterrupt


def content(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module", autouse=True)
def cheap_updates():
    """None: the time of a first update is compared with that of others."""


@pytest.fixture(scope="module")
def told(recipe_file, prepared_dir, tmp_path_factory):
    """The result of a dry run, and the empty folder beside its run folder."""
    folder = tmp_path_factory.mktemp("dry")
    changes = {"training.freeze": ["shared_embedding*"]}
    return folder, dry_run(
        load_recipe(recipe_file, changes),
        folder / "run",
        prepared_dir=prepared_dir,
        quiet=True,
    )


def test_it_writes_nothing(told):
    folder, _ = told
    assert list(folder.iterdir()) == []


@pytest.mark.thorough(each_commit=True)
def test_it_tells_the_size_of_the_model(told, recipe_file):
    _, result = told
    sizes = {"source_vocabulary_size": 20, "target_vocabulary_size": 20}
    model = build_model(load_recipe(recipe_file), sizes)
    assert result.parameters == model.count_params()
    assert result.parameters - result.trained_parameters == 20 * 8
    # float32 weights, and two moments of those that train.
    parameters = result.parameters + 2 * result.trained_parameters
    assert 4 * parameters <= result.state_bytes < 4 * parameters + 1000
    assert result.peak_bytes > result.state_bytes


@pytest.mark.thorough
def test_it_tells_times_and_how_they_were_measured(told):
    _, result = told
    assert 1 <= len(result.measured) <= result.num_shapes <= 2
    for shape in result.measured:
        assert 0 < shape.seconds < shape.first_seconds
    times = [shape.seconds for shape in result.measured]
    assert result.seconds_per_update <= max(times) * 1.5
    text = result.describe()
    for part in (
        "padding",
        f"{result.parameters:,} parameters, 160 of them frozen",
        "memory: ",
        "at the peak of this process",
        "estimated from 4 updates of each of",
        "for 6 updates and",
        "validation and checkpoints are not counted",
    ):
        assert part in text, part


@pytest.mark.thorough
def test_it_plans_the_batch_shapes_of_the_run(
    recipe_file, prepared_dir, tmp_path
):
    changes = {"training.max_shapes": None, "training.steps": 400}
    recipe = load_recipe(recipe_file, changes)
    result = dry_run(
        recipe, tmp_path / "run", prepared_dir=prepared_dir, quiet=True
    )
    # The square root of 400 / 100.
    assert result.num_shapes == 2
    assert result.steps == 400


@pytest.mark.thorough
def test_it_leaves_a_run_that_was_begun_as_it_is(
    recipe_file, prepared_dir, tmp_path, monkeypatch
):
    run_dir = tmp_path / "run"
    monkeypatch.setattr(TrainingLoop, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        train(recipe_file, run_dir, prepared_dir=prepared_dir, quiet=True)
    before = content(run_dir)
    assert before
    options = {"prepared_dir": prepared_dir, "quiet": True}
    dry_run(load_recipe(recipe_file), run_dir, **options)
    assert content(run_dir) == before
    with pytest.raises(UserError, match="`seed` is 7 in this run and 8"):
        dry_run(load_recipe(recipe_file, {"seed": 8}), run_dir, **options)
    # What replaces the run may have another one.
    other = load_recipe(recipe_file, {"seed": 8})
    dry_run(other, run_dir, restart=True, **options)
    assert content(run_dir) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.preset": "transformer_tny"}, "Did you mean"),
        ({"model.overrides.drop": 0.1}, "Did you mean `dropout`"),
        ({"model.overrides.encoder_fusion": "Fusion"}, "Layers for this slot"),
        ({"training.loss": "cross_entropi"}, "cross_entropy"),
        ({"training.strategy": "multi_worker"}, "training.strategy=mirrored"),
        ({"training.initialize_from": "nowhere"}, "not a run folder"),
        ({"training.callbacks": ["Nonsense"]}, 'has a callback "Nonsense"'),
    ],
)
def test_it_refuses_what_the_run_would_refuse(
    changes, message, recipe_file, prepared_dir, tmp_path
):
    recipe = load_recipe(recipe_file, changes)
    with pytest.raises(UserError, match=message):
        dry_run(recipe, tmp_path / "run", prepared_dir=prepared_dir, quiet=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("told", ["data", "devices"])
def test_it_refuses_what_a_run_that_has_begun_would_refuse(
    told, recipe_file, prepared_dir, finished_run, tmp_path
):
    run_dir = shutil.copytree(finished_run, tmp_path / "run")
    file, prepared = run_dir / "recipe.yaml", prepared_dir
    if told == "data":
        prepared = shutil.copytree(prepared_dir, tmp_path / "other")
        with open(prepared / "manifest.json", "a") as manifest:
            manifest.write("\n")
        message = "holds other prepared data"
    else:
        text = file.read_text()
        assert "batch_multiple: 1" in text
        file.write_text(text.replace("batch_multiple: 1", "batch_multiple: 2"))
        message = "a multiple of 2 in this run and of 1"
    before = content(run_dir)
    recipe = load_recipe(recipe_file, {"training.steps": 8})
    with pytest.raises(UserError, match=message):
        dry_run(recipe, run_dir, prepared_dir=prepared, quiet=True)
    assert content(run_dir) == before


@pytest.mark.thorough
def test_a_run_that_has_begun_needs_no_initial_weights_again(
    recipe_file, prepared_dir, finished_run, tmp_path, monkeypatch
):
    source = shutil.copytree(finished_run, tmp_path / "source")
    changes = {"training.initialize_from": str(source), "training.steps": 1}
    options = {"prepared_dir": prepared_dir, "quiet": True}
    with eager_updates():
        train(load_recipe(recipe_file, changes), tmp_path / "run", **options)
    shutil.rmtree(source)
    before = content(tmp_path / "run")
    more = load_recipe(recipe_file, {**changes, "training.steps": 2})
    assert dry_run(more, tmp_path / "run", **options).steps == 2
    assert content(tmp_path / "run") == before


@pytest.mark.thorough
def test_the_command_prints_it_and_prepares_elsewhere(
    recipe_file, tmp_path, capfd
):
    run_dir = tmp_path / "run"
    words = ["train", str(recipe_file), "--run-dir", str(run_dir), "--dry-run"]
    assert main([*words, "--quiet"]) == 0
    printed = capfd.readouterr()
    assert "time in all: about" in printed.out
    assert printed.err == ""
    assert not run_dir.exists()
    assert not RunFolder(run_dir).data_dir.exists()
