"""What must be true of a recipe's optimizers and learning rates.

* keys of another optimizer or schedule are refused, defaults are filled in
* each optimizer and schedule trains
* a plateau divides the rate after worse validations, and ends the run
* a run that divides its rate and is interrupted anywhere ends bit-identical
* a plateau without a validation set is refused
"""

import numpy as np
import pytest
from broken_runs import checkpoint, fails_at

from keras_deepnmt.errors import UserError
from keras_deepnmt.models import ConvSeq2Seq
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs.build import build_model, compile_model
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.training.checkpoints import CheckpointStore

RATE = "training.learning_rate"
OPTIMIZER = "training.optimizer"
SIZES = {"source_vocabulary_size": 11, "target_vocabulary_size": 13}
# So large a rate that the loss jumps up and down, by updates of bounded size.
PLATEAU = {
    f"{OPTIMIZER}.name": "nesterov",
    f"{OPTIMIZER}.momentum": 0.5,
    f"{OPTIMIZER}.global_clipnorm": 1.0,
    f"{RATE}.schedule": "plateau",
    f"{RATE}.warmup_steps": 1,
    f"{RATE}.peak": 20.0,
    f"{RATE}.divide_by": 2,
    "training.validate_every": 1,
}


@pytest.mark.parametrize(
    "changes, said",
    [
        ({f"{OPTIMIZER}.momentum": 0.9}, "belongs to `name: muon or nesterov`"),
        ({f"{OPTIMIZER}.weight_decay": 0.1}, "belongs to `name: adamw`"),
        (
            {f"{OPTIMIZER}.name": "nesterov", f"{OPTIMIZER}.beta_1": 0.5},
            "belongs to `name: adam or adamw or muon`",
        ),
        ({f"{RATE}.divide_by": 10}, "belongs to `schedule: plateau`"),
        (
            {f"{RATE}.schedule": "plateau", f"{RATE}.divide_by": 1},
            "must be a finite number above 1",
        ),
    ],
)
def test_keys_that_would_do_nothing_are_refused(recipe_file, changes, said):
    with pytest.raises(UserError, match=said):
        load_recipe(recipe_file, changes)


def test_defaults_are_those_of_the_kind_and_stand_in_the_runs_copy(
    recipe_file, tmp_path
):
    change = {f"{OPTIMIZER}.name": "nesterov", f"{RATE}.schedule": "constant"}
    recipe = load_recipe(recipe_file, {**change, f"{RATE}.warmup_steps": None})
    assert recipe.training.optimizer.momentum == 0.99
    assert recipe.training.optimizer.beta_1 is None
    assert recipe.training.learning_rate.warmup_steps == 1
    save_recipe(recipe, tmp_path / "copy.yaml", {})
    assert load_recipe(tmp_path / "copy.yaml") == recipe


def test_noam_is_refused_for_a_model_of_several_widths(recipe_file):
    recipe = load_recipe(
        recipe_file, {f"{RATE}.schedule": "noam", f"{RATE}.peak": None}
    )
    model = ConvSeq2Seq(11, 13, [8, 12], 2, 2)
    with pytest.raises(UserError, match="Received: hidden_dim=.8, 12.. Use in"):
        compile_model(recipe, model)


def test_noam_takes_its_peak_from_the_width(recipe_file):
    changes = {
        f"{RATE}.schedule": "noam",
        f"{RATE}.peak": None,
        f"{RATE}.scale": 3.0,
        f"{RATE}.warmup_steps": 5,
        "model.overrides.hidden_dim": 12,
    }
    model = build_model(load_recipe(recipe_file, changes), SIZES)
    compile_model(load_recipe(recipe_file, changes), model)
    rate = float(model.optimizer.learning_rate)
    # The first of five updates of the rise.
    np.testing.assert_allclose(rate, 3.0 / np.sqrt(12 * 5) / 5, rtol=1e-6)


@pytest.mark.parametrize(
    "changes, expected",
    [
        (
            {f"{OPTIMIZER}.name": "adamw", f"{RATE}.schedule": "constant"},
            ("AdamW", {"weight_decay": 0.01, "beta_2": 0.98}),
        ),
        ({f"{OPTIMIZER}.name": "nesterov"}, ("Nesterov", {"momentum": 0.99})),
        ({f"{OPTIMIZER}.beta_2": 0.75}, ("Adam", {"beta_2": 0.75})),
        (
            {f"{OPTIMIZER}.name": "muon", f"{OPTIMIZER}.beta_2": 0.75},
            ("Muon", {"momentum": 0.95, "adam_beta_2": 0.75}),
        ),
    ],
)
def test_the_optimizer_is_the_recipes(recipe_file, changes, expected):
    changes |= {f"{RATE}.warmup_steps": 4, f"{RATE}.peak": 0.5}
    recipe = load_recipe(recipe_file, changes)
    model = build_model(recipe, SIZES)
    compile_model(recipe, model)
    assert type(model.optimizer).__name__ == expected[0]
    assert expected[1].items() <= model.optimizer.get_config().items()
    np.testing.assert_allclose(float(model.optimizer.learning_rate), 0.125)


@pytest.fixture(scope="module")
def undisturbed(recipe_file, prepared_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "plateau"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MADE, no_bleu)
        recipe = load_recipe(recipe_file, PLATEAU)
        train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


MADE = "keras_deepnmt.runs.callbacks.make_bleu"


def no_bleu(run, model, *options):
    """A BLEU that costs no search."""
    from keras_deepnmt.evaluation.bleu_callback import BleuCallback

    return BleuCallback(list, *run.data.texts("valid"), verbose=0)


@pytest.fixture
def train_without_bleu(train_in, without_search, monkeypatch):
    monkeypatch.setattr(MADE, no_bleu)
    return train_in


@pytest.mark.thorough
def test_the_rate_follows_the_validations(undisturbed):
    logs = [logs for _, logs in RunFolder(undisturbed).history()]
    losses = [row["val_loss"] for row in logs]
    divisions = np.cumsum(np.diff(losses) > 0)
    assert 2 <= divisions[-2] < len(divisions)
    # An epoch's row has the rate that the epoch was trained with.
    rates = [row["learning_rate"] for row in logs[2:]]
    np.testing.assert_allclose(rates, 20.0 / 2.0 ** divisions[:-1])


@pytest.mark.thorough
def test_a_run_broken_off_goes_on_with_its_rate(
    undisturbed, train_without_bleu, tmp_path, monkeypatch
):
    # Interrupted and killed after the rate was divided, before the checkpoint.
    for at, error in ((3, KeyboardInterrupt()), (5, RuntimeError("killed"))):
        fails_at(monkeypatch, at, error)
        with pytest.raises(type(error)):
            train_without_bleu(PLATEAU)
    train_without_bleu(PLATEAU)
    whole, resumed = checkpoint(undisturbed, 6), checkpoint(tmp_path / "run", 6)
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(value, resumed[name], err_msg=name)


@pytest.mark.thorough
def test_a_rate_under_the_minimum_ends_the_run_and_it_stays_ended(
    train_without_bleu, tmp_path, monkeypatch
):
    changes = {**PLATEAU, f"{RATE}.minimum": 19.0, "training.steps": 30}
    finish = "keras_deepnmt.runs.finish.final_model"
    with monkeypatch.context() as patch:
        patch.setattr(finish, None)
        with pytest.raises(TypeError):
            train_without_bleu(changes)
    made = CheckpointStore(tmp_path / "run/checkpoints").steps()[-1]
    assert made < 12
    monkeypatch.setattr(TrainingLoop, "_fit", None)
    assert train_without_bleu(changes)["steps"] == made


def test_a_plateau_without_a_validation_set_is_refused(recipe_file, tmp_path):
    changes = {f"{RATE}.schedule": "plateau", "data.valid": None}
    recipe = load_recipe(recipe_file, changes)
    with pytest.raises(UserError, match="schedule: plateau` needs a valid"):
        train(recipe, tmp_path / "run", quiet=True)
