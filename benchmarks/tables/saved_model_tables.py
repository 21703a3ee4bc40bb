"""The table of exports for TensorFlow Serving."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    newest_rows,
)

RESULTS = Path(__file__).parents[1] / "exchange" / "results"


def saved_model_table(results: Path = RESULTS) -> list[str]:
    """Returns the Markdown blocks of the table; none without rows."""
    rows = read_rows(results / "saved_models.csv")
    rows = newest_rows(rows, "model", "dtype")
    if not rows:
        return []
    lines = [
        [
            f"`{row['dtype']}`",
            f"{int(row['bytes']) / 1e6:.1f}",
            f"{row['golden_sentences']}, {row['largest_difference']}",
            f"{row['equal_to_float32']} of {row['sentences']}",
            f"{row['bleu']} ± {row['bleu_interval']}",
            f"{float(row['cold_slowest_first_s']):.1f} s "
            f"({float(row['cold_largest_ratio']):.0f} ×)",
            f"{float(row['warmed_slowest_first_s']):.2f} s "
            f"({float(row['warmed_largest_ratio']):.2f} ×)",
        ]
        for row in rows
    ]
    one = rows[0]
    return [
        "Exports for TensorFlow Serving, by `saved_models.py`:",
        markdown_table(
            [
                "weights",
                "MB",
                "golden sentences, largest difference in a fresh process",
                "translations as in float32",
                "BLEU",
                "slowest first request without warm-up (× a later one)",
                "with warm-up",
            ],
            lines,
        ),
        f"`{one['model']}` on its test set. The first request of each "
        "signature and of 1 and 8 sentences; the ratio is the largest of "
        f"these. The {one['warmed_requests']} requests of the warm-up took "
        f"{one['warmed_requests_s']} s. {measured_when_and_where(rows)}",
    ]
