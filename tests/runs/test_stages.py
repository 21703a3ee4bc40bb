"""What must be true of a training in stages.

* a stage draws from its corpora until its end: epochs, an update, or no gain
* a run that is killed in a stage, or between two, ends bit by bit as one that
  was not
* what cannot be a stage is refused
"""

import shutil

import pytest
import yaml
from broken_runs import interrupt_after

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.changing_keys import Changing
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.recipes.stage_schema import StageRecipe
from keras_deepnmt.runs.build import plan_batches
from keras_deepnmt.runs.callbacks import check_unvalidated
from keras_deepnmt.runs.changes import check_changes, find_changes
from keras_deepnmt.runs.effects import check_effects
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.stages import end_of_gain, stage_starts

STAGES = [
    {"until_update": 2, "modifiers": {"typos": 0.3, "merge": 0.2}},
    {"patience": 1},
    {"modifiers": {"upper_case": 0.5}},
]
CHANGES = {
    "training.steps": 8,
    "training.validate_every": 2,
    "training.stages": STAGES,
}
# The second stage has no gain after update 6.
SCORES = {2: 9.0, 4: 5.0, 6: 4.0, 8: 3.0}


@pytest.fixture(autouse=True)
def no_search(without_search):
    """No result here depends on a translation."""


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "run"


@pytest.mark.thorough
def test_a_killed_run_goes_on_in_its_stage(
    train_in, given_scores, run_dir, monkeypatch, tmp_path
):
    with given_scores(SCORES):
        whole = train_in(CHANGES)
        stages = load_recipe(run_dir / "recipe.yaml").training.stages
        log = RunFolder(run_dir).history()
        assert stage_starts(stages, len, log, "val_bleu") == [0, 2, 6]
        run_dir.rename(tmp_path / "whole")
        # Within each stage, and where one begins.
        for step in (1, 2, 3, 6, 7):
            with monkeypatch.context() as patch:
                interrupt_after(patch, step)
                with pytest.raises(KeyboardInterrupt):
                    train_in(CHANGES)
        assert train_in(CHANGES)["weights_sha256"] == whole["weights_sha256"]
        run_dir.rename(tmp_path / "killed")
        other = {**CHANGES, "training.stages": [STAGES[0], STAGES[2]]}
        assert train_in(other)["weights_sha256"] != whole["weights_sha256"]


def test_a_stage_draws_from_its_corpora(recipe_file, prepared_dir):
    stages = [{"weights": {"train": 1}, "epochs": 1}, {"weights": {"train": 3}}]
    recipe = load_recipe(recipe_file, {"training.stages": stages})
    data = PreparedData(prepared_dir)
    plan = plan_batches(recipe, data)
    number = len(data.store("train"))
    assert sum(plan.rows_per_shape) == number
    thrice = [plan.batches_in_epoch(stage) for stage in (0, 1)]
    assert thrice[1] > 2 * thrice[0]
    for weights, message in (
        ({"tarin": 1}, "corpora of `data.train`: train. Received: tarin"),
        ({"train": 0}, "a weight above 0. Received: {'train': 0.0}"),
    ):
        stages = [{"weights": weights}]
        wrong = load_recipe(recipe_file, {"training.stages": stages})
        with pytest.raises(UserError) as error:
            plan_batches(wrong, data)
        assert message in str(error.value)
    patient = {"training.stages": [{"patience": 2}, {}]}
    with pytest.raises(UserError, match="stages.0.patience: 2` needs a valid"):
        check_unvalidated(load_recipe(recipe_file, patient))
    both = {
        "training.stages": [{"modifiers": {"typos": 0.1}}],
        "training.subword_sampling": 0.1,
    }
    with pytest.raises(UserError, match="cannot be used with `training.sub"):
        plan_batches(load_recipe(recipe_file, both), data)
    terms = {"training.stages": [{"modifiers": {"terms": 0.1}}]}
    with pytest.raises(UserError, match="`terms` needs the alignments"):
        plan_batches(load_recipe(recipe_file, terms), data)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([{"epochs": 1}], "must end with one that lasts until the last"),
        ([{}, {}], "when the next one begins. Received: none in stage 1"),
        (
            [{"epochs": 1, "patience": 2}, {}],
            "Received: epochs and patience in stage 1",
        ),
        ([{"epoch": 1}, {}], "did you mean `training.stages.0.epochs`"),
        ([{"modifiers": {"typo": 0.1}}], "did you mean `training.stages.0."),
        (
            [{"modifiers": {"typos": 0.6, "merge": 0.5}}],
            "`modifiers` must be at most 1 together",
        ),
        ([{"weights": {"train": -1}}], "of at least 0"),
        (
            [{"until_update": 9}, {"epochs": 1}, {"until_update": 9}, {}],
            "Received: 9 in stage 3, after 9 in a stage before it. Give a gr",
        ),
    ],
)
def test_what_cannot_be_a_stage_is_refused(recipe_file, stages, message):
    with pytest.raises(UserError) as error:
        load_recipe(recipe_file, {"training.stages": stages})
    assert message in str(error.value)


def kinds(recipe_file, same, changes):
    """The classes of keys that change in a recipe with `same` values."""
    started = load_recipe(recipe_file, same)
    given = load_recipe(recipe_file, {**same, **changes})
    return [change.changing for change in find_changes(started, given)]


METRIC = {"training.early_stopping_metric": "val_loss"}
# Keys by which validations get another BLEU.
MEASURE = {
    "training.validation_beams": 3,
    "training.validation_budget": 0.5,
    "evaluation.lowercase": True,
    "evaluation.tokenize": "13a",
    "decoding.length_penalty": 0.2,
}


def test_what_ends_a_stage_by_patience_does_not_change_silently(recipe_file):
    often = {"training.validate_every": 1}
    patience = {"training.stages": [{"patience": 1}, {}]}
    # The stages that are over would have ended after other updates.
    assert kinds(recipe_file, patience, METRIC) == [Changing.FIXED]
    assert kinds(recipe_file, patience, often) == [Changing.ON_REQUEST]
    by_epochs = {"training.stages": [{"epochs": 1}, {}]}
    assert kinds(recipe_file, by_epochs, METRIC) == [Changing.FINAL]
    assert kinds(recipe_file, by_epochs, often) == [Changing.FREE]


@pytest.mark.parametrize(
    "same",
    [
        {"training.stages": [{"patience": 1}, {}]},
        {"training.early_stopping_patience": 3},
        {"training.final_model": "average_best"},
    ],
    ids=lambda same: next(iter(same)),
)
def test_what_a_validation_measures_does_not_change_silently(recipe_file, same):
    asked = {Changing.ON_REQUEST}
    assert set(kinds(recipe_file, same, MEASURE)) == asked
    assert len(kinds(recipe_file, same, MEASURE)) == len(MEASURE)
    # No validation is compared, or by another value.
    free = {Changing.FREE, Changing.FINAL}
    assert set(kinds(recipe_file, {}, MEASURE)) == free
    assert set(kinds(recipe_file, {**same, **METRIC}, MEASURE)) == free
    # Validations have their own beams, and batches change no translation.
    final = {"decoding.num_beams": 3, "decoding.batch_size": 5}
    assert set(kinds(recipe_file, same, final)) == {Changing.FINAL}


def test_scores_of_a_run_whose_updates_are_made_may_be_made_anew(recipe_file):
    same = {"training.early_stopping_patience": 3}
    given = {**same, "evaluation.lowercase": True}
    made = find_changes(
        load_recipe(recipe_file, same), load_recipe(recipe_file, given)
    )
    with pytest.raises(UserError, match="`evaluation.lowercase`.*--allow-ch"):
        check_changes(made, recipe_file, 6, allow=False)
    check_changes(made, recipe_file, 6, allow=False, reason="all are made")
    training = load_recipe(recipe_file, given).training
    check_effects(recipe_file, made, training, None, 6, True, "all are made")


@pytest.mark.parametrize("allow", [False, True])
def test_a_run_with_stages_is_not_advised_to_allow_other_devices(
    allow, finished_run, train_in, run_dir
):
    shutil.copytree(finished_run, run_dir)
    stages = [{"epochs": 1}, {}]
    recipe = yaml.safe_load((run_dir / "recipe.yaml").read_text())
    recipe["training"]["stages"] = stages
    recipe["resolved"]["batches"]["batch_multiple"] = 2
    (run_dir / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    changes = {"training.stages": stages, "training.steps": 8}
    with pytest.raises(UserError, match="a multiple of 2 .* as many") as info:
        train_in(changes, allow_changes=allow)
    assert "--allow-changes" not in str(info.value)


def history(*values):
    return [
        (n, {"step": 10.0 * n, "val_bleu": value})
        for n, value in enumerate(values, start=1)
    ]


def test_a_stage_begins_where_the_one_before_ends():
    stages = [
        StageRecipe(epochs=3),
        StageRecipe(patience=2),
        StageRecipe(until_update=90),
        StageRecipe(),
    ]

    def starts(*values):
        log = history(*values)
        return stage_starts(stages, lambda stage: 5 + stage, log, "val_bleu")

    assert starts() == starts(9.0) == [0, 15]
    # Validations before the stage do not count, nor those that end later ones.
    gains = (9.0, 3.0, 2.0, 4.0, 4.0)
    assert starts(*gains) == [0, 15]
    assert starts(*gains, 1.0) == starts(*gains, 1.0, 9.0) == [0, 15, 60, 90]
    late = (9.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0, float("nan"))
    assert starts(*late) == [0, 15, 100, 100]


def test_a_gain_is_a_better_value():
    values = [(1, 3.0), (2, 2.0), (3, 2.0), (4, 1.0), (5, 1.5), (6, 1.2)]
    assert end_of_gain(values, 2, "min") == 6
    assert end_of_gain(values, 1, "max") == 2
    assert end_of_gain(values[:5], 2, "min") is None
    assert end_of_gain([], 1, "min") is None


@pytest.mark.thorough
def test_stages_are_written_into_the_run(train_in, run_dir):
    train_in({**CHANGES, "training.steps": 1})
    kept = yaml.safe_load((run_dir / "recipe.yaml").read_text())
    assert [s["patience"] for s in kept["training"]["stages"]] == [
        None,
        1,
        None,
    ]
    with pytest.raises(UserError, match="`training.stages` is"):
        train_in({**CHANGES, "training.stages": []})
