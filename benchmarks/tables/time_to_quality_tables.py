"""The table of what was tried to reach a validation BLEU sooner."""

from pathlib import Path

import yaml

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import count, decimals, table_section

RESULTS = Path(__file__).parents[1] / "quality" / "results"
# The number of updates is how long a try was, not what was tried.
LENGTH = "training.steps"


def time_to_quality_tables():
    """Returns the Markdown blocks of the table."""
    rows = read_rows(RESULTS / "time_to_quality.csv")
    by_note = {row["note"]: row for row in rows}
    return table_section(
        "All runs",
        rows,
        {
            "tried": lambda row: row["note"],
            "changed": lambda row: changed_cell(row, by_note),
            "updates": lambda row: count(row["updates"]),
            "target tokens (M)": lambda row: decimals(
                float(row["target_tokens"]) / 1e6, 1
            ),
            "minutes": lambda row: row["minutes"],
            "validation BLEU": lambda row: row["final_bleu"],
            "difference": lambda row: _difference(row, by_note),
            "minutes to the target": lambda row: (
                row["minutes_to_target"] or "not reached"
            ),
            "in the recipe": lambda row: _verdict(row, by_note),
        },
        "Differences are from the run named in the column `changed`. BLEU is "
        "that of the final model, with the recipe's search.",
    )


def changes_of(row):
    """Returns the changes of a run, by dotted key, as written."""
    pairs = (change.split("=", 1) for change in row["changes"].split("; "))
    return {key: value for key, value in pairs} if row["changes"] else {}


def changes_tried(row, base):
    """Returns what a run changes in comparison with `base`, or the recipe."""
    old = changes_of(base) if base else {}
    return {
        key: value
        for key, value in changes_of(row).items()
        if old.get(key) != value and key != LENGTH
    }


def in_recipe(changes, recipe):
    """Tells whether a recipe, as nested dicts, has all the changed values."""
    for dotted, value in changes.items():
        found = recipe
        for key in dotted.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if found != yaml.safe_load(value):
            return False
    return True


def _base(row, by_note):
    return by_note.get(row["compared_with"])


def changed_cell(row, by_note):
    """Describes what a run changes; `by_note` has the rows of all runs."""
    base = _base(row, by_note)
    changes = changes_tried(row, base)
    text = ", ".join(f"`{key}={changes[key]}`" for key in changes)
    if base is None:
        return text
    text = text or "the recipe of its commit, see “tried”"
    return f"{text}; from “{base['note']}”"


def _difference(row, by_note):
    base = _base(row, by_note)
    if base is None:
        return ""
    return f"{float(row['final_bleu']) - float(base['final_bleu']):+.1f}"


def _verdict(row, by_note):
    changes = changes_tried(row, _base(row, by_note))
    if not changes:
        return ""
    return "yes" if in_recipe(changes, _recipe()) else "no"


def _recipe():
    """The measured recipe with its defaults, as nested dicts."""
    import dataclasses

    from benchmarks.quality.time_to_quality import RECIPE
    from keras_deepnmt.recipes import load_recipe

    return dataclasses.asdict(load_recipe(RECIPE))
