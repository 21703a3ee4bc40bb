"""The table of memory."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    decimals,
    millions,
    table_section,
)

RESULTS = Path(__file__).parents[1] / "memory" / "results"


def memory_tables():
    """Returns the Markdown blocks of the table of memory."""
    return table_section(
        "Memory of a training step",
        read_rows(RESULTS / "dense_memory.csv"),
        {
            "connections": lambda row: row["stack"],
            "layers per side": lambda row: row["layers"],
            "parameters": lambda row: millions(row["parameters"]),
            "memory per token (KiB)": lambda row: decimals(
                row["kib_per_token"], 1
            ),
            "growth exponent": lambda row: decimals(row["exponent"], 2),
            "fitted memory per token with L layers (KiB)": _polynomial,
        },
    )


def _polynomial(row):
    constant = decimals(row["fit_constant"], 1)
    linear = f"{float(row['fit_linear']):+.1f}"
    quadratic = f"{float(row['fit_quadratic']):+.2f}"
    terms = f"{constant} {linear[0]} {linear[1:]} L"
    return f"{terms} {quadratic[0]} {quadratic[1:]} L²"
