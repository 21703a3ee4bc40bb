"""The table of models whose attention was trained to align words."""

import statistics
from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
)

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def guided_tables():
    """Returns the Markdown blocks about guided alignment."""
    file = RESULTS / "guided_alignment.csv"
    rows = read_rows(file) if file.exists() else []
    if not rows:
        return []
    groups = {}
    for row in rows:
        key = (
            row["gold"],
            row["recipe"],
            int(row["updates"]),
            float(row["weight"]),
            int(row["layer"]),
        )
        groups.setdefault(key, []).append(row)
    lines = [
        [
            f"{gold}, {some[0]['sentences']} pairs",
            f"`{recipe}`",
            count(updates),
            f"{weight:g}" if weight else "none",
            f"{layer} of {some[0]['layers']}",
            str(len(some)),
            _mean_and_range(
                100 * float(row["alignment_error_rate"]) for row in some
            ),
            _mean_and_range(float(row["test_bleu"]) for row in some),
        ]
        for (gold, recipe, updates, weight, layer), some in sorted(
            groups.items()
        )
    ]
    header = [
        "gold alignment",
        "recipe",
        "updates",
        "weight",
        "decoder block",
        "seeds",
        "alignment error rate (%)",
        "test BLEU",
    ]
    signatures = " or ".join(
        f"`{name}`" for name in sorted({row["bleu_signature"] for row in rows})
    )
    return [
        "### Guided alignment",
        "`guided_alignment.csv`",
        markdown_table(header, lines),
        f"{measured_when_and_where(rows)} Models trained with "
        "`training.objective.guided_alignment` of this weight, which guides "
        "the last of two decoder blocks and the last but one of more. Means "
        "over the seeds, with the smallest and the largest value; BLEU is "
        f"{signatures}.",
    ]


def _mean_and_range(values):
    values = sorted(values)
    mean = f"{statistics.mean(values):.2f}"
    if len(values) == 1:
        return mean
    return f"{mean} ({values[0]:.2f} to {values[-1]:.2f})"
