"""What must be true of a run that continues with another recipe.

* keys that no update depends on change freely, and the run ends bit by bit as
  one that had them from the beginning
* keys that updates depend on change only where that is asked for; recipe.yaml
  has the change and the update after which it holds, and a run that is killed
  after it ends bit by bit as if it had not been
* where validations decide about updates, more updates are one of these keys if
  a longer run would not have had the last validation
* each pair is used once in the epoch in which the batches change
* model, data and seed never change, and the message says what to do instead
* a message names the key that was changed, not one that follows from it
* a change without effect is refused and named, also in a run that has stopped
  early, which says why
* in a finished run the final model and its scores follow the recipe
"""

import shutil

import numpy as np
import pytest
import yaml
from broken_runs import arrays, checkpoint, fails_at, interrupt_after

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.build import plan_batches
from keras_deepnmt.runs.changes import (
    check_changes,
    find_changes,
    move_changes,
)
from keras_deepnmt.runs.run_folder import RunFolder

RATE = "training.learning_rate.peak"


@pytest.fixture(autouse=True)
def no_search(without_search):
    """No result here depends on a translation."""


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def copy_of_finished(finished_run, run_dir):
    return shutil.copytree(finished_run, run_dir)


@pytest.fixture
def train_until(train_in, monkeypatch):
    """Trains until Ctrl-C after an update."""

    def run(step, changes=None, **options):
        with monkeypatch.context() as patch:
            interrupt_after(patch, step)
            with pytest.raises(KeyboardInterrupt):
                train_in(changes, **options)

    return run


def assert_same_checkpoint(one, other, step):
    expected, received = checkpoint(one, step), checkpoint(other, step)
    assert expected.keys() == received.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(value, received[name], err_msg=name)


def history_of(run_dir):
    return yaml.safe_load((run_dir / "recipe.yaml").read_text())["resolved"][
        "changes"
    ]


@pytest.mark.thorough
def test_keys_that_no_update_depends_on_change_without_a_trace_in_the_weights(
    finished_run, train_in, train_until, run_dir
):
    others = {
        "training.validate_every": 2,
        "training.checkpoint_every": 4,
        "training.validation_budget": None,
        "training.early_stopping_patience": 9,
        "training.early_stopping_metric": "val_loss",
        "evaluation.lowercase": True,
        "decoding.num_beams": 3,
    }
    train_until(4, others)
    received = train_in()
    expected = RunFolder(finished_run).read_summary()
    for key in ("weights_sha256", "averaged_steps", "evaluation", "decoding"):
        assert received[key] == expected[key]
    assert_same_checkpoint(finished_run, run_dir, 6)
    (entry,) = history_of(run_dir)
    assert entry["update"] == 4 and "batches" not in entry
    assert entry["keys"]["training.validate_every"] == {"before": 2, "after": 3}
    # The final model is the mean again, as it is without early stopping.
    assert entry["keys"]["training.final_model"]["after"] == "average_last"


# The second part of each is a change of the batches in the middle of an epoch.
CHANGED = {RATE: 0.005, "training.batch_tokens": 40}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(CHANGED, marks=pytest.mark.thorough),
        *(
            pytest.param(change, marks=pytest.mark.slow)
            for change in (
                {"training.gradient_accumulation_steps": 2},
                {
                    "training.label_smoothing": 0.3,
                    "training.optimizer.beta_2": 0.9,
                    "training.learning_rate.schedule": "constant",
                },
                {
                    "training.word_dropout": 0.5,
                    "training.subword_sampling": 0.2,
                },
                {"training.objective.r_drop.alpha": 1.0},
                {"training.precision": "mixed_bfloat16"},
            )
        ),
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_run_killed_after_the_change_ends_as_if_it_had_not_been(
    change, finished_run, train_in, train_until, run_dir, tmp_path, monkeypatch
):
    change = {"data.valid": None, **change}
    train_until(2, {"data.valid": None}, prepared_dir=None)
    shutil.copytree(run_dir, tmp_path / "start")
    options = {"prepared_dir": None, "allow_changes": True}
    train_in(change, **options)
    run_dir.rename(tmp_path / "whole")
    shutil.copytree(tmp_path / "start", run_dir)
    # Killed before the first checkpoint after the change, and after it.
    for step in (3, 5):
        with monkeypatch.context() as patch:
            fails_at(patch, step, RuntimeError("killed"))
            with pytest.raises(RuntimeError, match="killed"):
                train_in(change, **options)
            options["allow_changes"] = False
    train_in(change, **options)
    assert_same_checkpoint(tmp_path / "whole", run_dir, 6)
    assert history_of(run_dir) == history_of(tmp_path / "whole")
    (entry,) = history_of(run_dir)
    assert entry["update"] == 2
    # And it is another run than the one that did not change.
    expected, received = (checkpoint(r, 6) for r in (finished_run, run_dir))
    assert any(np.any(expected[name] != received[name]) for name in expected)


@pytest.mark.thorough
def test_a_change_of_the_updates_is_refused_unless_it_is_asked_for(
    copy_of_finished, train_in, capsys
):
    before = (copy_of_finished / "recipe.yaml").read_bytes()
    longer = {**CHANGED, "training.steps": 8}
    with pytest.raises(UserError) as info:
        train_in(longer)
    message = str(info.value)
    assert "`training.batch_tokens` is 64 in this run and 40" in message
    assert f"`{RATE}` is 0.01 in this run and 0.005" in message
    assert "The updates after 6 depend" in message
    assert "--allow-changes" in message and "\n" not in message
    assert (copy_of_finished / "recipe.yaml").read_bytes() == before
    summary = train_in(longer, allow_changes=True, quiet=False)
    assert "`training.batch_tokens` is 40 after update 6" in (
        capsys.readouterr().err
    )
    assert summary["steps"] == 8
    (entry,) = history_of(copy_of_finished)
    assert entry["update"] == 6
    assert entry["keys"] == {
        "training.steps": {"before": 6, "after": 8},
        "training.batch_tokens": {"before": 64, "after": 40},
        RATE: {"before": 0.01, "after": 0.005},
    }
    assert entry["batches"]["batch_tokens"] == 64
    # The recipe of the run is now the changed one.
    assert train_in(longer) == summary
    again = train_in({**longer, "training.steps": 9})
    assert again["steps"] == 9
    assert [entry["update"] for entry in history_of(copy_of_finished)] == [6, 8]


@pytest.mark.thorough
def test_each_pair_is_used_once_in_the_epoch_in_which_the_batches_change(
    copy_of_finished, train_in, prepared_dir
):
    train_in({**CHANGED, "training.steps": 7}, allow_changes=True)
    recipe, data = (
        RunFolder(copy_of_finished).recipe(),
        PreparedData(prepared_dir),
    )
    plan = plan_batches(recipe, data)
    original = load_recipe(
        RunFolder(copy_of_finished).recipe_file,
        {"training.batch_tokens": 64, "resolved": {}},
    )
    original = plan_batches(original, data)
    rows, pairs, step = [], len(data.store("train")), 0
    while len(rows) < pairs:
        shape, batch = plan.batch(step)
        if step < 6:
            assert batch.tolist() == original.batch(step)[1].tolist()
        else:
            longer_side = max(shape.source_length, shape.target_length)
            assert shape.batch_size * longer_side <= 40
        rows += batch.tolist()
        step += 1
    assert step > 8
    assert sorted(rows) == list(range(pairs))


@pytest.mark.parametrize(
    ("changes", "key", "remedy"),
    [
        (
            {"model.overrides.dropout": 0.1, "training.validate_every": 1},
            "`model.overrides.dropout` is 0.3 in this run and 0.1",
            "`training.initialize_from: .*run` starts another",
        ),
        ({"data.max_length": 8}, "`data.max_length`", "--from-preset"),
        ({"seed": 8, RATE: 0.1}, "`seed` is 7 in this run and 8", "--restart"),
        (
            {"training.optimizer.name": "nesterov"},
            '`training.optimizer.name` is "adam" in this run and '
            '"nesterov" in the recipe given. The checkpoints',
            "initialize_from",
        ),
        (
            {"training.precision": "mixed_float16"},
            '`training.precision` is "float32" in this run and "mixed_float16"',
            "initialize_from",
        ),
    ],
)
def test_model_data_and_seed_never_change(
    copy_of_finished, train_in, changes, key, remedy
):
    with pytest.raises(UserError, match=f"{key}.*{remedy}") as info:
        train_in(changes, prepared_dir=None, allow_changes=True)
    assert "\n" not in str(info.value)


def test_a_message_names_the_key_that_was_changed_not_what_follows_from_it(
    copy_of_finished, train_in
):
    with pytest.raises(UserError, match="`training.loss` is") as info:
        train_in({"training.loss": "cross_entropy"})
    assert "label_smoothing`" not in str(info.value)
    with pytest.raises(UserError, match="`training.early_stop.*no eff") as info:
        train_in({"training.early_stopping_patience": 2})
    assert "final_model" not in str(info.value)


def test_what_would_have_no_effect_on_a_finished_run_is_refused(
    copy_of_finished, train_in, capsys
):
    before = (copy_of_finished / "recipe.yaml").read_bytes()
    # At once, with all that has to change.
    with pytest.raises(UserError, match="depend on it, but all 6 up") as info:
        train_in({RATE: 0.1})
    assert "more `training.steps`, and add `--allow-changes`" in str(info.value)
    for changes in ({"training.validate_every": 2}, {RATE: 0.1}):
        with pytest.raises(UserError, match="all 6 updates are made") as info:
            train_in(changes, allow_changes=True, quiet=False)
        assert f"`{next(iter(changes))}` would have no" in str(info.value)
    # Before anything is told or made.
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError, match="has kept 3 checkpoints"):
        train_in({"training.average_checkpoints": 4})
    assert (copy_of_finished / "recipe.yaml").read_bytes() == before


@pytest.mark.thorough
def test_the_final_model_of_a_finished_run_is_made_anew(
    copy_of_finished, train_in, monkeypatch
):
    run = RunFolder(copy_of_finished)
    before = run.read_summary()
    changes = {
        "training.average_checkpoints": 3,
        "evaluation.lowercase": True,
        "decoding.num_beams": 5,
    }
    # Killed: the finished model stays until the next one is complete.
    finish = "keras_deepnmt.runs.finish.final_model"
    with monkeypatch.context() as patch:
        patch.setattr(finish, None)
        with pytest.raises(TypeError):
            train_in(changes)
    assert run.read_summary() == before and not run.is_finished()
    after = train_in(changes)
    assert run.is_finished() and after["steps"] == 6
    assert after["averaged_steps"] == [4, 5, 6]
    assert after["decoding"]["num_beams"] == 5
    assert "case:lc" in after["valid"]["bleu"]["signature"]
    final = arrays(copy_of_finished / "model" / "model.weights.h5")
    stored = [
        arrays(run.checkpoints().path(step) / "model.weights.h5")
        for step in (4, 5, 6)
    ]
    for name, value in final.items():
        mean = np.mean([np.float64(one[name]) for one in stored], axis=0)
        np.testing.assert_allclose(value, mean, rtol=1e-6, err_msg=name)
    assert train_in(changes) == after


# Training stops at update 8, after the best validation, that of update 4.
EARLY = {
    "training.steps": 20,
    "training.validate_every": 2,
    "training.checkpoint_every": 3,
    "training.early_stopping_patience": 2,
}
SCORES = {2: 5.0, 4: 9.25, 6: 7.0, 8: 6.0, 10: 9.5, 12: 1.0, 14: 1.0, 16: 1.0}


@pytest.mark.thorough
def test_a_run_that_stopped_early_says_why_and_which_key_continues_it(
    train_in, given_scores, run_dir, capsys, monkeypatch
):
    why = "no better `val_bleu` than 9.25 of update 4"
    with given_scores(SCORES):
        stopped = train_in(EARLY, quiet=False)
        assert stopped["steps"] == 8 and why in stopped["stopped_early"]
        assert "Stopped at update 8 of 20: the last 2" in (
            text := capsys.readouterr().err
        )
        assert why in text
        # The same command again.
        assert train_in(EARLY, quiet=False) == stopped
        text = capsys.readouterr().err
        assert "It stopped at update 8 of 20" in text and why in text
        # More updates alone do nothing, and the message says what does.
        with pytest.raises(UserError) as info:
            train_in({**EARLY, "training.steps": 400}, quiet=False)
        message = str(info.value)
        assert "`training.steps` would have no effect" in message
        assert why in message and "\n" not in message
        assert "`training.early_stopping_patience` is 2; a larger" in message
        assert capsys.readouterr().err == ""
        assert train_in(EARLY) == stopped
        # More patience: it goes on, and ends as if it had had it always.
        patient = {**EARLY, "training.early_stopping_patience": 3}
        goes_on = train_in(patient)
        assert goes_on["steps"] == 16 and goes_on["averaged_steps"] == [10]
        assert "of update 10" in goes_on["stopped_early"]
        run_dir.rename(run_dir.with_name("went-on"))
        whole = train_in(patient)
    assert whole["weights_sha256"] == goes_on["weights_sha256"]
    assert_same_checkpoint(run_dir, run_dir.with_name("went-on"), 16)


@pytest.mark.thorough
def test_the_best_checkpoint_follows_another_metric(
    train_in, given_scores, run_dir
):
    with given_scores(SCORES):
        train_in({**EARLY, "training.final_model": "best"})
        by_loss = {**EARLY, "training.early_stopping_metric": "val_loss"}
        by_loss["training.early_stopping_patience"] = None
        by_loss["training.final_model"] = "best"
        by_loss["training.steps"] = 10
        summary = train_in(by_loss)
    assert summary["best"]["metric"] == "val_loss"
    losses = {
        int(logs["step"]): logs["val_loss"]
        for _, logs in RunFolder(run_dir).history()
    }
    assert summary["best"]["value"] == pytest.approx(
        losses[summary["best"]["step"]]
    )


@pytest.mark.thorough
def test_a_schedule_of_validations_gives_back_the_rate(
    train_in, run_dir, capsys
):
    # Each validation of the rates that the plateau gave is worse than the last.
    plateau = {
        "training.learning_rate.schedule": "plateau",
        "training.learning_rate.warmup_steps": 1,
        RATE: 20.0,
        "training.learning_rate.divide_by": 2,
        "training.optimizer.global_clipnorm": 1.0,
        "training.validate_every": 1,
        "training.steps": 4,
    }
    train_in(plateau)
    # Each validation may divide the rate.
    with pytest.raises(UserError, match="`training.validate_every`.*--allow-c"):
        train_in({**plateau, "training.validate_every": 2})
    rows = [logs for _, logs in RunFolder(run_dir).history()]
    assert rows[-1]["learning_rate"] < 20.0
    constant = {
        **plateau,
        "training.learning_rate.schedule": "constant",
        "training.learning_rate.divide_by": None,
        "training.steps": 5,
    }
    train_in(constant, allow_changes=True)
    rows = [logs for _, logs in RunFolder(run_dir).history()]
    assert rows[-1]["learning_rate"] == pytest.approx(20.0)


@pytest.mark.slow
def test_sentences_for_bleu_are_chosen_anew_for_another_budget(
    train_in, train_until, run_dir
):
    file = RunFolder(run_dir).validation_file
    train_until(4)
    file.write_text('{"sentences": 1, "of_sentences": 5, "seed": 7}')
    train_in({"training.validation_budget": 0.9})
    assert '"sentences": 5' in file.read_text()


def test_the_log_gets_a_column_for_a_value_that_earlier_validations_lack(
    run_dir,
):
    run = RunFolder(run_dir)
    run_dir.mkdir()
    run.append_log(0, {"step": 2, "loss": 3.5})
    run.append_log(1, {"step": 4, "loss": 3.0, "val_bleu": 9.0})
    run.append_log(2, {"step": 6, "loss": 2.5})
    run.truncate_log(6)
    assert run.history() == [
        (0, {"step": 2.0, "loss": 3.5}),
        (1, {"step": 4.0, "loss": 3.0, "val_bleu": 9.0}),
        (2, {"step": 6.0, "loss": 2.5}),
    ]


def test_changes_of_an_update_that_is_made_again_hold_from_the_one_before():
    def entry(update, before, after, tokens=None):
        keys = {RATE: {"before": before, "after": after}}
        batches = {} if tokens is None else {"batches": tokens}
        return {"update": update, "keys": keys, **batches}

    history = [entry(10, 1, 2, "a"), entry(30, 2, 3), entry(50, 3, 4, "b")]
    assert move_changes(history, 60, "c") == history
    assert move_changes(history, 20, "c") == [
        entry(10, 1, 2, "a"),
        entry(20, 2, 4, "b"),
    ]
    assert move_changes(history, 10, "c") == [entry(10, 1, 4, "a")]
    # What is as it was before is no change, and neither is a start.
    assert move_changes([entry(9, 1, 2, "a"), entry(9, 2, 1)], 9, "a") == []
    assert move_changes(history, 0, "c") == []


@pytest.mark.slow
def test_a_run_without_an_update_takes_any_change_of_the_training(
    train_in, run_dir, monkeypatch
):
    fails_at(monkeypatch, 1, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        train_in()
    changed = train_in(CHANGED)
    assert history_of(run_dir) == []
    shutil.rmtree(run_dir)
    assert train_in(CHANGED)["weights_sha256"] == changed["weights_sha256"]


@pytest.mark.slow
def test_a_restart_has_no_changes(copy_of_finished, train_in):
    train_in({**CHANGED, "training.steps": 7}, allow_changes=True)
    train_in({"training.steps": 2}, restart=True)
    resolved = RunFolder(copy_of_finished).recipe().resolved
    assert "changes" not in resolved


@pytest.mark.parametrize(
    "same",
    [
        {
            "training.learning_rate.schedule": "plateau",
            "training.learning_rate.warmup_steps": 1,
        },
        {"training.stages": [{"patience": 1}, {}]},
    ],
    ids=lambda same: next(iter(same)),
)
def test_more_updates_after_a_validation_of_its_own_are_asked_for(
    recipe_file, same
):
    def changes(steps, **others):
        started = load_recipe(recipe_file, {**others, "training.steps": steps})
        given = load_recipe(recipe_file, {**others, "training.steps": 12})
        return find_changes(started, given)

    # Validations follow each third update, and the last one.
    with pytest.raises(UserError, match="`training.steps` is 7.*--allow-ch"):
        check_changes(changes(7, **same), recipe_file, 7, allow=False)
    check_changes(changes(7, **same), recipe_file, 3, allow=False)
    check_changes(changes(6, **same), recipe_file, 6, allow=False)
    check_changes(changes(7), recipe_file, 7, allow=False)
