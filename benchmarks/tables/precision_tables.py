"""The table of models trained in bfloat16 and in float32."""

import statistics
from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    decimals,
    markdown_table,
    measured_when_and_where,
    with_interval,
)
from keras_deepnmt.evaluation import seed_statistics

FLOAT32 = "float32"
RESULTS = Path(__file__).parents[1] / "quality" / "results"


def precision_tables():
    """Returns the Markdown blocks about training in bfloat16."""
    file = RESULTS / "precision.csv"
    rows = read_rows(file) if file.exists() else []
    if not rows:
        return []
    groups = {}
    for row in sorted(
        [*rows, *_quality_rows(rows)], key=lambda row: int(row["seed"])
    ):
        groups.setdefault((row["recipe"], row["precision"]), []).append(row)
    lines = [
        [
            f"`{recipe}`",
            precision,
            count(some[0]["updates"]),
            ", ".join(row["seed"] for row in some),
            ", ".join(
                f"{decimals(row['test_bleu'], 2)} ± "
                f"{decimals(row['test_bleu_interval'], 2)}"
                for row in some
            ),
            decimals(_mean(some, "test_bleu"), 2),
            _difference(some, groups.get((recipe, FLOAT32), [])),
            ", ".join(decimals(row["minutes"], 1) for row in some),
        ]
        for (recipe, precision), some in sorted(groups.items())
    ]
    header = [
        "recipe",
        "`training.precision`",
        "updates",
        "seeds",
        "test BLEU of each",
        "mean",
        "difference from float32",
        "minutes of each",
    ]
    signatures = sorted({row["bleu_signature"] for row in rows})
    return [
        "### Training in bfloat16",
        "`precision.csv`; where it has none in float32, those of `table.csv`, "
        "whose minutes are those of other machines",
        markdown_table(header, lines),
        f"{measured_when_and_where(rows)} The minutes have compilations in "
        "them, which the first run of each recipe and precision makes and "
        "later ones may find. BLEU is "
        f"{' or '.join(f'`{each}`' for each in signatures)}, with its 95 % "
        "bootstrap interval; the difference is the mean over the seeds that "
        "both have, with its 95 % interval over them.",
    ]


def _quality_rows(rows):
    """The float32 runs of recipes that `rows` has in bfloat16 only."""
    updates = {row["recipe"]: row["updates"] for row in rows}
    for row in rows:
        if row["precision"] == FLOAT32:
            updates.pop(row["recipe"], None)
    return [
        {
            **row,
            "precision": FLOAT32,
            "test_bleu": row["bleu"],
            "test_bleu_interval": row["bleu_interval"],
            "minutes": row["training_minutes"],
        }
        for row in read_rows(RESULTS / "table.csv")
        if row["test_set"] == "test"
        and row["updates"] == updates.get(row["recipe"])
    ]


def _difference(rows, others):
    """The mean difference in BLEU from the runs with the same seeds."""
    scores = {row["seed"]: float(row["test_bleu"]) for row in others}
    differences = [
        float(row["test_bleu"]) - scores[row["seed"]]
        for row in rows
        if row["seed"] in scores
    ]
    if rows is others or not differences:
        return ""
    if len(differences) == 1:
        return f"{differences[0]:+.2f}"
    found = seed_statistics(differences)
    sign = "+" if found.mean > 0 else ""
    return sign + with_interval(found.mean, found.interval)


def _mean(rows, column):
    return statistics.mean(float(row[column]) for row in rows)
