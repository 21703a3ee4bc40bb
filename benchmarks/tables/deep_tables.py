"""The table of deep post-norm models."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
)

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def deep_tables():
    """Returns the Markdown blocks about deep post-norm models."""
    rows = read_rows(RESULTS / "deep_post_norm.csv")
    if not rows:
        return []
    losses = {}
    for row in rows:
        key = (row["model"], row["peak"], row["seed"])
        losses.setdefault(key, {})[int(row["updates"])] = row["loss"]
    updates = sorted({int(row["updates"]) for row in rows})
    table = markdown_table(
        [
            "model",
            "learning rate",
            "seed",
            *(count(number) for number in updates),
        ],
        [
            [*key, *(found.get(number, "") for number in updates)]
            for key, found in sorted(
                losses.items(), key=lambda item: float(item[0][1])
            )
        ],
    )
    first = rows[0]
    return [
        "### Deep post-norm models",
        "`deep_post_norm.csv`",
        table,
        f"{measured_when_and_where(rows)} Mean training loss (nats per token, "
        "label smoothing 0.1) of the 50 updates up to the number above, on "
        "Multi30k, English to German. All models have 18 + 6 layers of width "
        f"128, post-norm, and the same batches of {first['sentences']} "
        f"sentences; Adam, whose learning rate rises for {first['warmup']} "
        "updates.",
    ]
