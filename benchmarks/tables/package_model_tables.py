"""The table of the trained models that come with the package."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    markdown_table,
    measured_when_and_where,
    millions,
    newest_rows,
)

RESULTS = Path(__file__).parents[1] / "quality" / "results"
WHEELS = Path(__file__).parents[1] / "exchange" / "results" / "wheel_size.csv"


def package_model_table() -> list[str]:
    """Returns the Markdown blocks of the table; none without rows."""
    rows = read_rows(RESULTS / "trained_models.csv")
    rows = newest_rows(rows, "model", "test_set")
    if not rows:
        return []
    lines = [
        [
            f"`{row['model']}`",
            millions(int(row["parameters"])),
            f"{int(row['bytes']) / 1e6:.1f}",
            f"{row['test_set']} ({int(row['sentences']):,} sentences)",
            f"{row['bleu']} ± {row['bleu_interval']}",
            f"{row['chrf']} ± {row['chrf_interval']}",
            f"{float(row['bleu']) - float(row['bleu_float32']):+.2f}",
        ]
        for row in rows
    ]
    headings = ["model", "parameters", "MB", "test set", "BLEU", "chrF"]
    return [
        markdown_table([*headings, "BLEU changed by float16"], lines),
        f"With 95 % intervals. {measured_when_and_where(rows)}"
        + _wheel_sizes(),
    ]


def _wheel_sizes():
    """Says what the models of real text add to the wheel."""
    rows = read_rows(WHEELS)
    if not rows:
        return ""
    whole, without = (
        f"{int(rows[-1][name]) / 1e6:.1f} MB"
        for name in ("bytes", "bytes_without")
    )
    return (
        f" The wheel has {whole} with all of them and {without} without the "
        f"{rows[-1]['models']} models of real text (`wheel_size.py`)."
    )
