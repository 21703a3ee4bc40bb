"""The table of the ablation of soft SurfaceFusion."""

import statistics
from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
    millions,
)

RESULTS = Path(__file__).parents[1] / "quality" / "results"


def soft_fusion_tables():
    """Returns the Markdown blocks of the table; none without rows."""
    file = RESULTS / "soft_fusion.csv"
    rows = read_rows(file) if file.exists() else []
    if not rows:
        return []
    groups = {}
    for row in rows:
        groups.setdefault((row["variant"], row["updates"]), []).append(row)
    headings = [
        "variant",
        "parameters",
        "updates",
        "seeds",
        "training loss",
        "validation loss",
        "validation loss of the decoder alone",
        "validation BLEU",
    ]
    lines = [
        [
            variant,
            millions(some[0]["parameters"]),
            count(updates),
            ", ".join(row["seed"] for row in some),
            _mean(some, "training_loss", 3),
            _mean(some, "valid_loss", 3),
            _mean(some, "decoder_alone_valid_loss", 2),
            _mean(some, "valid_bleu", 2),
        ]
        for (variant, updates), some in groups.items()
    ]
    widest = max(float(row["valid_bleu_interval"]) for row in rows)
    return [
        "### Soft SurfaceFusion, one thing changed at a time",
        "`soft_fusion.csv`",
        markdown_table(headings, lines),
        f"{measured_when_and_where(rows)} `{rows[0]['recipe']}` in bfloat16. "
        "All but plain, hard and those named plain are soft fusion with what "
        "the first column says. Losses are a target token's (nats), after "
        "training, without dropout and label smoothing, on 1,000 pairs of the "
        "training set and on the validation set; that of the decoder alone, "
        "where the surface is left out of the trained model, on 1,000 of its "
        "pairs. BLEU is that of greedy "
        "translations "
        f"(`{rows[0]['bleu_signature']}`), with bootstrap intervals of at most "
        f"± {widest:.1f}.",
    ]


def _mean(rows, column, digits):
    if not rows[0][column]:
        return ""
    return f"{statistics.mean(float(row[column]) for row in rows):.{digits}f}"
