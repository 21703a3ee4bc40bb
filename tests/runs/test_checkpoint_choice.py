"""Single checkpoints of a run: which one is meant, and what it translates.

* the latest, the best by the run's own validations, and that of a step
* an unfinished run translates and is evaluated with a checkpoint
* a run with a moving average translates with it, as its validation did
"""

import json
import shutil

import numpy as np
import pytest
from broken_runs import translate_by_weights

from keras_deepnmt.decoding import SearchOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.checkpoints import (
    choose_checkpoint,
    load_model,
    open_run,
)
from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough


def make_run(folder, recipe_file, prepared_dir, **changes):
    """Trains six updates, and forgets that the run was finished."""
    recipe = load_recipe(recipe_file, {"training.validate_every": 6} | changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", translate_by_weights)
        train(recipe, folder, prepared_dir=prepared_dir, quiet=True)
    (folder / "run.json").unlink()
    return folder


@pytest.fixture
def run(finished_run, tmp_path):
    """An unfinished run with the checkpoints 4, 5 and 6."""
    run = RunFolder(shutil.copytree(finished_run, tmp_path / "run"))
    run.run_file.unlink()
    return run


def choose_step(run, checkpoint):
    return choose_checkpoint(run, checkpoint)[0]


def damage(run, step):
    with open(run.checkpoints().path(step) / "state.npz", "ab") as file:
        file.write(b"more")


def test_the_latest_and_that_of_a_step(run):
    assert choose_step(run, "latest") == 6
    assert choose_step(run, "4") == choose_step(run, 4) == 4
    with pytest.raises(UserError, match="no checkpoint of step 3. Take .*4, 5"):
        choose_step(run, 3)
    with pytest.raises(UserError, match="latest, best or the number"):
        choose_step(run, "newest")
    damage(run, 6)
    with pytest.raises(UserError, match="damaged"):
        choose_step(run, 6)
    with pytest.warns(UserWarning, match="Taking the checkpoint before it"):
        assert choose_step(run, "latest") == 5


@pytest.mark.parametrize("metric", ["val_bleu", "val_loss"])
def test_the_best_is_that_of_the_best_validation(
    recipe_file, prepared_dir, tmp_path, metric
):
    run = RunFolder(
        make_run(
            tmp_path / "run",
            recipe_file,
            prepared_dir,
            **{
                "training.validate_every": 2,
                "training.early_stopping_metric": metric,
            },
        )
    )
    values = {int(logs["step"]): logs[metric] for _, logs in run.history()}
    wanted = (min if metric == "val_loss" else max)(values.values())
    step, folder = choose_checkpoint(run, "best")
    assert values[step] == wanted
    assert open_run(run.directory, "best").checkpoint == folder
    with open(folder / "state.npz", "ab") as file:
        file.write(b"more")
    with pytest.raises(UserError, match="damaged.*or latest"):
        choose_checkpoint(run, "best")


def test_without_a_validation_no_checkpoint_is_the_best(run):
    for best in (run.directory / "checkpoints").glob("best-*"):
        shutil.rmtree(best)
    with pytest.raises(UserError, match="Take one of 4, 5, 6, or latest"):
        choose_checkpoint(run, "best")
    shutil.rmtree(run.directory / "checkpoints")
    with pytest.raises(UserError, match="no checkpoint. Train further"):
        choose_checkpoint(run, "best")


def test_an_unfinished_run_translates_with_its_checkpoint(run):
    with pytest.raises(UserError, match="`--checkpoint latest`"):
        Translator.load(run.directory)
    saved = open_run(run.directory, "5")
    translator = Translator.load(saved, num_beams=1, compiled=False)
    assert (translator.num_beams, translator.batch_size) == (1, 7)
    given = SearchOptions(num_beams=3)
    assert Translator.load(saved, options=given).options == given
    other = load_model(run.directory, 6)
    equal = map(
        np.array_equal, translator.model.get_weights(), other.get_weights()
    )
    assert not all(equal)
    pairs = ["a b"], ["b a"]
    again = Translator.load(saved, compiled=False)
    assert translator.score(*pairs) == again.score(*pairs)


def test_other_tokenizers_are_refused(run):
    (run.tokenizer_dir / "source.model").write_bytes(
        (run.tokenizer_dir / "target.model").read_bytes()
    )
    text = run.recipe_file.read_text("utf-8")
    source = run.recipe().resolved["tokenizer"]["source"]
    run.recipe_file.write_text(text.replace(source, "a" * 64))
    with pytest.raises(UserError, match="not the tokenizer"):
        open_run(run.directory, "latest")


def test_no_run_folder(tmp_path):
    with pytest.raises(UserError, match="no such run folder"):
        open_run(tmp_path / "none", "latest")
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="prepared data"):
        open_run(tmp_path, "latest")


def test_each_checkpoint_has_its_own_scores(run):
    rows = [
        evaluate(run.directory, checkpoint=step, num_beams=1, compiled=False)
        for step in (5, "latest", 5)
    ]
    assert [row["checkpoint"] for row in rows] == [5, 6, 5]
    assert [row["steps"] for row in rows] == [5, 6, 5]
    assert rows[0]["weights_sha256"] != rows[1]["weights_sha256"]
    kept = json.loads(run.scores_file.read_text())["evaluations"]
    assert [row["checkpoint"] for row in kept] == [6, 5]


def test_a_moving_average_is_what_is_used(recipe_file, prepared_dir, tmp_path):
    folder = make_run(
        tmp_path / "run",
        recipe_file,
        prepared_dir,
        **{
            "training.optimizer.average_momentum": 0.9,
            "training.average_checkpoints": 1,
        },
    )
    model = load_model(folder, "latest")
    averaged = [np.array(w) for w in model.get_weights()]
    model.load_weights(RunFolder(folder).model_dir / "model.weights.h5")
    for mine, expected in zip(averaged, model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, expected)
