"""The table of models exported for ONNX Runtime."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    newest_rows,
)

RESULTS = Path(__file__).parents[1] / "exchange" / "results"


def onnx_table(results: Path = RESULTS) -> list[str]:
    """Returns the Markdown blocks of the table; none without rows."""
    rows = newest_rows(read_rows(results / "onnx_models.csv"), "model")
    if not rows:
        return []
    lines = [
        [
            f"`{row['model']}`",
            f"{int(row['bytes']) / 1e6:.1f}",
            f"{row['golden_equal']} of {row['golden_sentences']}",
            row["largest_difference"],
            f"{row['equal_translations']} of {row['sentences']}",
        ]
        for row in rows
    ]
    one = rows[0]
    return [
        "Models exported for ONNX Runtime, by `onnx_models.py`:",
        markdown_table(
            [
                "model",
                "MB",
                f"equal golden sentences ({one['num_beams']} beams)",
                "largest difference of a score",
                "equal translations of the test set",
            ],
            lines,
        ),
        "The first model is trained; the others are presets with random "
        f"weights. {measured_when_and_where(rows)} ONNX Runtime "
        f"{one['onnxruntime']}, tf2onnx {one['tf2onnx']}.",
    ]
