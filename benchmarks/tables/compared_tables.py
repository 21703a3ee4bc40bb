"""The table of models compared with a baseline in quality and speed."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
    millions,
    ratio,
    ratio_range,
    with_interval,
)
from keras_deepnmt.evaluation import format_p_value

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def compared_tables():
    """Returns the Markdown blocks about compared runs; none without rows."""
    file = RESULTS / "compared_runs.csv"
    rows = read_rows(file) if file.exists() else []
    if not rows:
        return []
    headings = [
        "test set",
        "recipe",
        "parameters",
        "training text",
        "updates",
        "BLEU",
        "difference",
        "p-value",
        "sentences/s",
        "relative speed",
    ]
    return [
        "### Compared in quality and speed",
        "`compared_runs.csv`",
        markdown_table(headings, [_line(row) for row in rows]),
        f"{measured_when_and_where(rows)} A row with the difference 0 and no "
        "p-value is the baseline of the rows below it. Updates are counted "
        "from random weights, with those of a run whose weights were taken. "
        "Each model translates the test set by the search of its recipe; BLEU "
        "has its 95 % bootstrap interval, and p-values are of the paired "
        "approximate randomization test. The models take turns: relative speed "
        "is the median and the range over the rounds, above 1 is faster than "
        "the baseline. One seed: another would give other differences.",
    ]


def _line(row):
    is_baseline = float(row["p_value"]) == 1 and not float(
        row["bleu_difference"]
    )
    return [
        f"{row['corpus']}, {count(row['sentences'])} sentences",
        f"`{row['recipe']}`",
        millions(row["parameters"]),
        row["training_text"],
        count(row["updates"]),
        with_interval(row["bleu"], row["bleu_interval"]),
        "0" if is_baseline else f"{float(row['bleu_difference']):+.1f}",
        "" if is_baseline else format_p_value(float(row["p_value"])),
        row["sentences_per_second"],
        _relative_speed(row, is_baseline),
    ]


def _relative_speed(row, is_baseline):
    if not row["speed_ratio_median"]:
        return ""
    if is_baseline:
        return "1"
    median = ratio(row["speed_ratio_median"])
    return f"{median} ({ratio_range(row, 'speed_ratio')})"
