"""The table of sentences that are longer than in training."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
)

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def length_tables():
    """Returns the Markdown blocks about long sequences of digits."""
    rows = read_rows(RESULTS / "length_extrapolation.csv")
    if not rows:
        return []
    lengths = sorted({int(row["length"]) for row in rows})
    groups = {}
    for row in rows:
        key = (row["positions"], row["seed"])
        groups.setdefault(key, {})[int(row["length"])] = row
    table = markdown_table(
        ["positions", *(f"{length} digits" for length in lengths)],
        [
            [name, *(_cell(found.get(length)) for length in lengths)]
            for (name, _), found in groups.items()
        ],
    )
    first = rows[0]
    return [
        "### Longer sentences than in training",
        "`length_extrapolation.csv`",
        table,
        f"{measured_when_and_where(rows)} Sequences of digits are translated "
        "into the same digits in reverse. Each model, of "
        "2 + 2 layers of width 64, was trained on sequences of 1 to "
        f"{first['longest_in_training']} digits, {count(first['updates'])} "
        "updates with one seed. A cell has the sentences that are right as a "
        "whole, and the digits that are right at their place, in percent, of "
        f"{count(first['sentences'])} sentences; one digit in ten is right by "
        "chance.",
    ]


def _cell(row):
    if row is None:
        return ""
    return f"{float(row['exact']):.1f} / {float(row['digits']):.1f}"
