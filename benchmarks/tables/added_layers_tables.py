"""The table of layers that are added to a trained model."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    newest_rows,
)

RESULTS = Path(__file__).parents[1] / "exchange" / "results"


def added_layers_table() -> list[str]:
    """Returns the Markdown blocks of the table; none without rows."""
    rows = read_rows(RESULTS / "added_layers.csv")
    rows = newest_rows(rows, "slot", "layer", "arguments")
    if not rows:
        return []
    lines = [
        [
            f"`{row['slot']}`",
            f"`{row['layer']}` {row['arguments']}".strip(),
            f"{int(row['fresh']):,}",
            f"{float(row['cross_entropy']):.3f}",
            "yes" if float(row["largest_difference"]) == 0 else "no",
        ]
        for row in rows
    ]
    one = rows[0]
    headings = ["slot", "added layer", "new parameters", "cross-entropy"]
    return [
        markdown_table([*headings, "changes nothing at first"], lines),
        f"`{one['model']}`, {int(one['sentences']):,} sentences, nats per "
        f"token; without the layer {float(one['cross_entropy_plain']):.3f}. "
        f"{measured_when_and_where(rows)}",
    ]
