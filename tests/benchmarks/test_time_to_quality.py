"""What must be true of the minutes until a BLEU is reached."""

import sys

import pytest

from benchmarks.quality import time_to_quality
from benchmarks.quality.time_to_quality import first_reached, reached_columns
from benchmarks.shared.result_rows import append_row
from benchmarks.tables.time_to_quality_tables import (
    changed_cell,
    changes_tried,
    in_recipe,
)

TRAINING = {"seconds": 600.0, "target_tokens": 9_000}


def curve(*bleus):
    """Validations every 100 updates, 60 seconds and 1,000 tokens."""
    return [
        {
            "step": str(99 + 100 * i),
            "seconds": "60.0",
            "tokens": "1000.0",
            "val_bleu": bleu,
        }
        for i, bleu in enumerate(bleus)
    ]


def test_the_first_validation_that_is_good_enough_counts():
    rows = curve("10.0", "", "39.0", "38.0", "41.0")
    assert first_reached(rows, 39.0) == (299, 180.0, 3000.0)
    assert first_reached(rows, 41.5) is None
    assert first_reached([], 0.0) is None


def test_otherwise_the_final_model_counts_with_all_minutes():
    columns = reached_columns(curve("38.0"), TRAINING, 500, 39.2, 39.0)
    assert columns == {
        "target_bleu": 39.0,
        "updates_to_target": 500,
        "minutes_to_target": 10.0,
        "tokens_to_target": 9_000,
    }


def test_a_target_that_was_not_reached_has_no_minutes():
    columns = reached_columns(curve("38.0"), TRAINING, 500, 38.9, 39.0)
    assert columns["minutes_to_target"] == ""
    assert columns["updates_to_target"] == columns["tokens_to_target"] == ""


def row(**changes):
    return {"changes": "; ".join(f"{k}={v}" for k, v in changes.items())}


def test_what_was_tried_is_the_difference_from_the_other_run():
    base = row(**{"training.steps": 100, "training.batch_tokens": 2_400})
    tried = row(
        **{
            "training.steps": 200,
            "training.batch_tokens": 2_400,
            "model.overrides": "{dropout: 0.2}",
        }
    )
    changes = {"model.overrides": "{dropout: 0.2}"}
    assert changes_tried(tried, base) == changes
    assert changes_tried(row(), None) == {}
    assert "training.batch_tokens" in changes_tried(tried, None)
    recipe = {"model": {"overrides": {"dropout": 0.2}}}
    assert in_recipe(changes, recipe)
    assert not in_recipe(changes, {"model": {"overrides": {}}})
    assert not in_recipe({"training.optimizer.name": "adam"}, {"training": 1})


def test_a_run_of_another_version_of_the_recipe_says_so():
    old = {**row(**{"training.steps": 9}), "note": "old", "compared_with": ""}
    new = {**row(), "note": "new", "compared_with": "old"}
    by_note = {"old": old, "new": new}
    assert changed_cell(old, by_note) == ""
    assert changed_cell(new, by_note) == (
        "the recipe of its commit, see “tried”; from “old”"
    )
    new["changes"] = "training.r_drop=1.0"
    said = "`training.r_drop=1.0`; from “old”"
    assert changed_cell(new, by_note) == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--note", "b", "--compared-with", "x"], "got 'x'. Its notes are"),
        (["--note", "a"], "--note must differ from those of other rows"),
        (["--note", "b", "--scale", "smoke"], "an --output of its own"),
    ],
)
def test_notes_are_checked_before_training(
    arguments, message, tmp_path, monkeypatch, capsys
):
    output = tmp_path / "rows.csv"
    append_row(output, {"note": "a"})
    if "--scale" in arguments:
        output = time_to_quality.PUBLISHED
    arguments = ["time_to_quality.py", *arguments, "--output", str(output)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit):
        time_to_quality.parse()
    assert message in " ".join(capsys.readouterr().err.split())
