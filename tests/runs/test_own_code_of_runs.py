"""A run, a preset folder and an export keep what they need of the user's code.

* a run folder has a copy, which is found without an option, also when the
  user's file is gone; so have a mean of checkpoints and a preset folder, in
  which no path of the machine is
* a changed file is a warning that says which one is used, a changed copy an
  error; `--import` decides otherwise
* a folder of someone else is not run without consent
* an export runs where the file cannot be imported
"""

import json
import logging
import shutil

import numpy as np
import pytest
from own_code_process import LAYER, new_process

from keras_deepnmt import Translator, UserError, cli, import_code
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.runs.average import average
from keras_deepnmt.runs.checkpoints import load_model
from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.runs.preset_folder import save_run_to_preset
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator.loading import read_run

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("without_search")]
RECIPE = """\
extends: {recipe}
name: mine
import: [my_layers.py]
model:
  overrides:
    encoder_self_attention: {{ScaledSelfAttention: {{scale: 0.5}}}}
training: {{steps: 2, validate_every: 2}}
evaluation: {{metrics: [bleu, SharedLetters]}}
"""
CODE = f"""{LAYER}

from sacrebleu.metrics import CHRF


class SharedLetters(CHRF):
    pass
"""


@pytest.fixture(scope="module")
def made(recipe_file, prepared_dir, tmp_path_factory):
    """A folder with my_layers.py, mine.yaml, a trained run, and a home."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "my_layers.py").write_text(CODE)
    text = RECIPE.format(recipe=recipe_file)
    (folder / "mine.yaml").write_text(text)
    with (
        new_process(folder / "home", folder),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(Translator, "translate", lambda self, texts: list(texts))
        train("mine.yaml", "run", prepared_dir=prepared_dir, quiet=True)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy of it, in a later process of the same user."""
    folder = tmp_path / "later"
    shutil.copytree(made, folder)
    with new_process(folder / "home", folder):
        yield folder


def change(file):
    """Makes the user's file compute something else."""
    file.write_text(file.read_text().replace("* self.scale", "* 0.0"))


def copy_in(run):
    (copy,) = run.glob("code/*/my_layers.py")
    return copy


def attention(model):
    return model.encoder_blocks[0].attention


def test_the_copy_is_found_when_the_file_is_gone(folder):
    (folder / "my_layers.py").unlink()
    assert attention(read_run("run").load_model()).scale == 0.5
    for checkpoint in ("latest", "best"):
        assert attention(load_model("run", checkpoint)).scale == 0.5


def test_the_recipe_of_the_run_trains_again_from_its_copy(folder):
    recipe = load_recipe("run/recipe.yaml")
    assert recipe.import_ == [str(copy_in(folder / "run"))]


def test_the_run_is_scored_by_its_own_metric(folder, monkeypatch):
    (folder / "my_layers.py").unlink()
    monkeypatch.setattr(
        Translator, "translate", lambda self, texts, **_: list(texts)
    )
    row = evaluate("run", num_resamples=20)
    assert list(row["scores"]) == ["bleu", "SharedLetters"]
    chrf = evaluate("run", num_resamples=20, metrics=("chrf",))["scores"]
    own = row["scores"]["SharedLetters"]
    for key in ("value", "interval"):
        assert own[key] == chrf["chrf"][key]
    assert "|code:" in own["signature"]


def test_a_mean_of_checkpoints_has_the_copy(folder):
    average("run", "mean", last=2)
    shutil.rmtree("run")
    assert attention(read_run("mean").load_model()).scale == 0.5


def test_a_preset_folder_has_the_copy_and_no_path(folder):
    save_run_to_preset("run", "preset")
    expected = read_run("run").load_model().get_weights()
    for name in ("translator.json", "recipe.yaml"):
        text = (folder / "preset" / name).read_text()
        assert "my_layers.py" in text and str(folder) not in text
    shutil.rmtree("run")
    (folder / "my_layers.py").unlink()
    with new_process(folder / "home"):
        model = read_run("preset").load_model()
        assert attention(model).scale == 0.5
        for one, other in zip(expected, model.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_fine_tuning_takes_the_code_of_the_preset(folder, recipe_file):
    save_run_to_preset("run", "preset")
    steps = {"training.steps": 1}
    content = recipe_file.read_text().partition("model:")
    plain = content[0] + "data:" + content[2].partition("data:")[2]
    (folder / "plain.yaml").write_text(plain)
    model = json.loads((folder / "preset" / "translator.json").read_text())
    recipe = load_recipe(
        "plain.yaml",
        steps,
        model={k: model[k] for k in ("preset", "overrides")},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", lambda self, texts: list(texts))
        train(recipe, "tuned", from_preset="preset", quiet=True)
    shutil.rmtree("preset")
    assert copy_in(folder / "tuned").read_text() == CODE
    assert attention(read_run("tuned").load_model()).scale == 0.5


def test_a_changed_file_is_a_warning_and_the_copy_is_used(folder, caplog):
    # The run was made in a folder of this name.
    run = folder / "run" / "run.json"
    content = json.loads(run.read_text())
    content["code"][0]["origin"] = str(folder / "my_layers.py")
    run.write_text(json.dumps(content))
    change(folder / "my_layers.py")
    with caplog.at_level(logging.WARNING):
        read_run("run").load_model()
    (record,) = caplog.records
    assert "has changed since it was copied to" in record.message
    assert "which is used. --import" in record.message
    assert "self.scale\n" in copy_in(folder / "run").read_text()


def test_a_file_that_is_given_replaces_the_copy(folder, caplog):
    change(folder / "my_layers.py")
    with caplog.at_level(logging.WARNING):
        import_code("my_layers.py")
        layer = attention(read_run("run").load_model())
    assert [r.message for r in caplog.records] == [
        f"{folder}/my_layers.py: is used. It differs from the code that the "
        f"model was trained with, {copy_in(folder / 'run')}."
    ]
    assert not np.asarray(layer(np.ones((1, 2, 8)))).any()


def test_a_copy_that_was_changed_or_lost_is_refused(folder):
    copy = copy_in(folder / "run")
    change(copy)
    with pytest.raises(UserError, match="not the file that the model was tra"):
        read_run("run").load_model()
    copy.unlink()
    with pytest.raises(UserError, match="missing.* --import my_layers.py"):
        read_run("run").load_model()


def test_a_run_of_someone_else_needs_consent(folder, capsys):
    copy = copy_in(folder / "run")
    with new_process(folder / "another home"):
        with pytest.raises(UserError, match=f"consent.*--import {copy}"):
            read_run("run").load_model()
        assert cli.main(["export", "run", "preset", "--format", "preset"]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and f"--import {copy}" in error
        words = ["--format", "preset", "--import", str(copy)]
        assert cli.main(["export", "run", "preset", *words]) == 0
    with new_process(folder / "another home"):
        assert attention(read_run("preset").load_model()).scale == 0.5


def test_a_resumed_run_keeps_its_copy_unless_a_file_is_given(
    folder, prepared_dir, caplog
):
    change(folder / "my_layers.py")

    def resume(steps, *more, **options):
        changes = {"training.steps": steps, "import": ["my_layers.py", *more]}
        recipe = load_recipe("mine.yaml", changes)
        train(recipe, "run", prepared_dir=prepared_dir, quiet=True, **options)
        record = read_run("run").summary["code"][0]
        return (folder / "run" / record["file"]).read_text()

    with caplog.at_level(logging.WARNING):
        assert resume(3) == CODE
        assert "with which this run was started" in caplog.text
    import_code("my_layers.py")
    with pytest.raises(UserError, match="`import` is .* `--allow-changes`"):
        resume(4)
    assert "* 0.0" in resume(4, allow_changes=True)
    assert len(list((folder / "run" / "code").iterdir())) == 2
    (folder / "more.py").write_text("WIDTH = 7\n")
    assert "* 0.0" in resume(5, "more.py")


def test_a_mistake_in_the_file_is_one_line_with_its_place(
    folder, prepared_dir, capsys
):
    text = CODE.replace("* self.scale", "* self.scal")
    (folder / "my_layers.py").write_text(text)
    words = ["mine.yaml", "--prepared", str(prepared_dir), "--run-dir", "new"]
    assert cli.main(["train", *words, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert error == (
        "deepnmt train: error: my_layers.py, line 12, in call: AttributeError: "
        "'ScaledSelfAttention' object has no attribute 'scal'\n"
    )
    assert not (folder / "new").exists()
