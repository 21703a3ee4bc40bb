"""What must be true of a run that fine-tunes a preset folder.

* it begins with the folder's weights: its first validation loss is theirs
* its data are prepared with the folder's tokenizers, or have them already
* the recipe need not name the model; if it does, only dropout may differ, and
  slots that are empty in the preset's model may have a layer
* it is recorded in run.json, and the run is resumed without the option
* other models, tokenizers and folders are refused in one line
"""

import shutil

import numpy as np
import pytest
import yaml
from broken_runs import arrays, fails_at

from keras_deepnmt import cli
from keras_deepnmt.data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough(each_commit=True)


@pytest.fixture
def new_recipe(recipe_file, tmp_path):
    """Writes a recipe for other text, without a model, with changed values."""

    def write(changes=None, **sections):
        content = yaml.safe_load(recipe_file.read_text())
        del content["model"]
        content["data"]["vocabulary_size"] = 19
        content["data"]["train"] = [content["data"]["test"]] * 1
        content["training"] |= {
            # Too small to change a weight in float32.
            "learning_rate": {"schedule": "constant", "peak": 1e-30},
            "steps": 2,
            "validate_every": 1,
            "average_checkpoints": 1,
            **(changes or {}),
        }
        file = tmp_path / "new.yaml"
        file.write_text(yaml.safe_dump({**content, **sections}))
        return file

    return write


def test_the_first_validation_loss_is_that_of_the_preset(
    preset_dir, new_recipe, without_search, tmp_path, capsys
):
    summary = train(new_recipe(), tmp_path / "run", from_preset=preset_dir)
    assert "Initialized: shared 40 weights" in capsys.readouterr().err
    run = RunFolder(tmp_path / "run")
    (_, first), *_ = run.history()
    data = PreparedData(run.data_dir)
    preset = Translator.load(preset_dir, compiled=False)
    assert data.manifest["tokenizer"] == {
        "source": preset.source_tokenizer.sha256,
        "target": preset.target_tokenizer.sha256,
    }
    scores = preset.score(*data.texts("valid"))
    loss = -sum(score.total for score in scores) / sum(
        len(score.tokens) for score in scores
    )
    np.testing.assert_allclose(first["val_loss"], loss, rtol=1e-5)
    # A new optimizer counts from zero, and the recipe of the run is complete.
    assert summary["steps"] == 2
    assert summary["preset"] == "transformer_tiny"
    assert summary["overrides"]["hidden_dim"] == 8
    assert summary["initialize_from"]["run"] == "transformer_tiny.letters"
    assert summary["initialize_from"]["weights"] == str(
        preset_dir.resolve() / "model.weights.h5"
    )
    assert Translator.load(tmp_path / "run").num_beams == 2


@pytest.mark.thorough
def test_it_is_resumed_without_the_option(
    preset_dir, new_recipe, without_search, tmp_path, monkeypatch, capsys
):
    copy = tmp_path / "copy"
    shutil.copytree(preset_dir, copy)
    recipe = new_recipe({"learning_rate": {"peak": 0.01, "warmup_steps": 1}})
    whole = train(recipe, tmp_path / "whole", from_preset=copy, quiet=True)
    # Killed before any checkpoint: the weights are read again.
    fails_at(monkeypatch, 1, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        train(recipe, tmp_path / "run", from_preset=copy, quiet=True)
    command = ["train", str(recipe), "--run-dir", str(tmp_path / "run")]
    capsys.readouterr()
    assert cli.main(command) == 0
    assert "Initialized: shared 40 weights" in capsys.readouterr().err
    received = RunFolder(tmp_path / "run").read_summary()
    assert received["weights_sha256"] == whole["weights_sha256"]
    assert received["initialize_from"] == whole["initialize_from"]
    before = arrays(preset_dir / "model.weights.h5")
    after = arrays(tmp_path / "run" / "model" / "model.weights.h5")
    assert any(np.any(before[name] != after[name]) for name in before)
    # A finished run needs the folder no more.
    shutil.rmtree(copy)
    assert cli.main(command) == 0
    assert "this run is finished" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_recipe_may_name_the_same_model_with_other_dropout(
    preset_dir, new_recipe, recipe_file, prepared_dir, without_search, tmp_path
):
    model = yaml.safe_load(recipe_file.read_text())["model"]
    model["overrides"] |= {"dropout": 0.0, "attention_dropout": 0.1}
    run_dir = tmp_path / "run"
    # A prepared folder with the same tokenizers.
    summary = train(
        new_recipe(model=model),
        run_dir,
        from_preset=preset_dir,
        prepared_dir=prepared_dir,
        quiet=True,
    )
    assert summary["overrides"]["dropout"] == 0.0
    before = arrays(preset_dir / "model.weights.h5")
    for name, value in arrays(run_dir / "model" / "model.weights.h5").items():
        np.testing.assert_array_equal(before[name], value)
    model["overrides"]["hidden_dim"] = 16
    with pytest.raises(UserError, match="its model has `hidden_dim` 8, .* 16"):
        train(
            new_recipe(model=model),
            tmp_path / "other",
            from_preset=preset_dir,
            quiet=True,
        )
    model = {"preset": "conv_seq2seq_tiny"}
    with pytest.raises(UserError, match="has the class Transformer, .*Conv"):
        train(
            new_recipe(model=model),
            tmp_path / "other",
            from_preset=preset_dir,
            quiet=True,
        )
    assert not (tmp_path / "other").exists()


@pytest.mark.thorough
def test_a_layer_is_added_to_an_empty_slot(
    preset_dir, new_recipe, without_search, tmp_path, capsys
):
    run_dir = tmp_path / "run"
    command = ["train", str(new_recipe()), "--from-preset", str(preset_dir)]
    command += ["--run-dir", str(run_dir), "--set"]
    slot = "model.overrides.encoder_fusion"
    assert cli.main([*command, f"{slot}=FineGrainedLayerAttention"]) == 0
    assert "Initialized: shared 40 weights" in capsys.readouterr().err
    before = arrays(preset_dir / "model.weights.h5")
    after = arrays(run_dir / "model" / "model.weights.h5")
    assert sum(after.keys() >= {name} for name in before) == len(before)
    assert len(after) > len(before)
    model = Translator.load(run_dir, compiled=False).model
    assert type(model.encoder_fusion).__name__ == "FineGrainedLayerAttention"
    # What the preset's own weights belong to stays.
    run_dir = tmp_path / "other"
    command[command.index("--run-dir") + 1] = str(run_dir)
    assert cli.main([*command, "model.overrides.normalize_first=true"]) == 2
    assert "its model has `normalize_first` False" in capsys.readouterr().err
    assert not run_dir.exists()


def test_data_with_other_tokenizers_are_refused(
    preset_dir, new_recipe, recipe_file, tmp_path, capsys
):
    content = yaml.safe_load(new_recipe().read_text())
    content |= yaml.safe_load("{model: {preset: transformer_tiny}}")
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(content))
    other = tmp_path / "prepared"
    command = ["prepare", "--recipe", str(tmp_path / "other.yaml"), "-q"]
    assert cli.main([*command, "--output", str(other)]) == 0
    capsys.readouterr()
    command = ["train", str(new_recipe()), "--from-preset", str(preset_dir)]
    command += ["--run-dir", str(tmp_path / "run"), "-q"]
    assert cli.main([*command, "--prepared", str(other)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "its tokenizers are not those of" in error
    assert "--tokenizer-source" in error
    content["data"]["tokenizer_source"] = str(other / "tokenizer/source.model")
    del content["model"]
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match="`data.tokenizer_source` must be that"):
        train(
            tmp_path / "other.yaml",
            tmp_path / "run",
            from_preset=preset_dir,
            quiet=True,
        )
    assert not (tmp_path / "run").exists()


def test_mistakes_are_told_in_one_line(
    preset_dir, finished_run, new_recipe, tmp_path, capsys
):
    recipe = str(new_recipe())
    run_dir = tmp_path / "run"
    for options, expected in (
        ([], "`model` is missing"),
        (["--from-preset", "nowhere"], "nowhere: is not a preset folder"),
        (["--from-preset", str(finished_run)], "export RUN DIR"),
        (
            ["--from-preset", str(preset_dir)]
            + ["--set", "training.initialize_from=elsewhere"],
            "`training.initialize_from` must not be given with",
        ),
    ):
        command = ["train", recipe, "--run-dir", str(run_dir), *options, "-q"]
        assert cli.main(command) == 2
        error = capsys.readouterr().err
        assert expected in error and error.count("\n") == 1
    assert not run_dir.exists()
