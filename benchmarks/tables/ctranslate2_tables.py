"""The table of the types of weights for CTranslate2."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    newest_rows,
)

RESULTS = Path(__file__).parents[1] / "exchange" / "results"


def ctranslate2_table(results: Path = RESULTS) -> list[str]:
    """Returns the Markdown blocks of the table; none without rows."""
    rows = read_rows(results / "ctranslate2_types.csv")
    rows = newest_rows(rows, "model", "dtype")
    if not rows:
        return []
    lines = [
        [
            f"`{row['dtype']}`",
            f"{int(row['bytes']) / 1e6:.1f}",
            f"{row['golden_equal']} of {row['golden_sentences']}",
            row["largest_difference"],
            f"{row['equal_translations']} of {row['sentences']}",
            f"{row['higher_here']}, {row['higher_there']}",
            f"{row['bleu']} ± {row['bleu_interval']}",
        ]
        for row in rows
    ]
    one = rows[0]
    return [
        "Models exported for CTranslate2, by `ctranslate2_types.py`:",
        markdown_table(
            [
                "weights",
                "MB",
                "equal golden sentences (greedy)",
                "largest difference",
                f"equal translations ({one['num_beams']} beams)",
                "others with a higher score here, there",
                "BLEU",
            ],
            lines,
        ),
        f"`{one['model']}` on its test set; BLEU with this package is "
        f"{one['bleu_here']}. {measured_when_and_where(rows)} CTranslate2 "
        f"{one['ctranslate2']}.",
    ]
