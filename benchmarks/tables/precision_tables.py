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
    for row in sorted(rows, key=lambda row: int(row["seed"])):
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
        for (recipe, precision), some in groups.items()
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
    return [
        "### Training in bfloat16",
        "`precision.csv`",
        markdown_table(header, lines),
        f"{measured_when_and_where(rows)} The minutes have compilations in "
        "them, which the first run of each recipe and precision makes and "
        f"later ones may find. BLEU is `{rows[0]['bleu_signature']}`, with its "
        "95 % bootstrap interval; the difference is the mean over the seeds "
        "that both have, with its 95 % interval over them.",
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
