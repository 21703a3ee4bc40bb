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
            f"{float(row['cold_largest_ratio']):,.0f} ×",
            f"{float(row['warmed_largest_ratio']):.2f} ×",
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
                "first request without warm-up, relative to a later one",
                "with warm-up",
            ],
            lines,
        ),
        f"`{one['model']}` on its test set. The ratios are the largest of the "
        "first requests of each signature with 1 and 8 sentences, with warm-up "
        f"each a median over {one['warmed_processes']} processes; the warm-up "
        f"has {one['warmed_requests']} requests. "
        f"{measured_when_and_where(rows)}",
    ]
