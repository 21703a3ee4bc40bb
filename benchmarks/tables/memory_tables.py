"""The tables of memory."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    decimals,
    millions,
    table_section,
)

RESULTS = Path(__file__).parents[1] / "memory" / "results"


def memory_tables():
    """Returns the Markdown blocks of the tables of memory."""
    return [
        *_training_table(),
        *_checkpointing_table(),
        *_repeated_calls_table(),
    ]


def _training_table():
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


def _checkpointing_table():
    rows = read_rows(RESULTS / "activation_checkpointing.csv")
    kept = {}
    for row in rows:
        if row["activations"] == "kept":
            kept[row["layers"], row["commit"]] = float(row["seconds"])
    return table_section(
        "Memory and time with activation checkpointing",
        rows,
        {
            "layers per side": lambda row: row["layers"],
            "parameters": lambda row: millions(row["parameters"]),
            "activations of blocks": lambda row: row["activations"],
            "most memory in an update (MiB)": lambda row: decimals(
                row["mib_most"], 0
            ),
            "between updates (MiB)": lambda row: decimals(
                row["mib_between"], 0
            ),
            "difference (MiB)": lambda row: decimals(
                float(row["mib_most"]) - float(row["mib_between"]), 0
            ),
            "time of an update, kept = 1": lambda row: decimals(
                float(row["seconds"]) / kept[row["layers"], row["commit"]], 2
            ),
        },
        "Width 512; 32 sentences of 32 tokens on each side, Adam, XLA. Other "
        "work ran on the machine; both sides made their updates in turns.",
    )


def _repeated_calls_table():
    return table_section(
        "Memory of repeated calls",
        read_rows(RESULTS / "repeated_calls.csv"),
        {
            "side": lambda row: row["side"],
            "`MALLOC_ARENA_MAX`": lambda row: row["malloc_arena_max"],
            "calls": lambda row: f"{int(row['calls']):,}",
            "sentences": lambda row: f"{int(row['sentences']):,}",
            "after 100 calls (MiB)": lambda row: decimals(
                row["mib_after_first_100"], 0
            ),
            "after 500 calls (MiB)": lambda row: decimals(
                row["mib_after_warm_up"], 0
            ),
            "least and most later (MiB)": lambda row: " to ".join(
                decimals(row[f"mib_{end}"], 0) for end in ("least", "most")
            ),
            "difference (%)": lambda row: " to ".join(
                f"{float(row[f'percent_{end}']):+.1f}"
                for end in ("least", "most")
            ),
        },
        "Other work ran on the machine. Rows of fewer than 10,000 calls were "
        "broken off.",
    )


def _polynomial(row):
    constant = decimals(row["fit_constant"], 1)
    linear = f"{float(row['fit_linear']):+.1f}"
    quadratic = f"{float(row['fit_quadratic']):+.2f}"
    terms = f"{constant} {linear[0]} {linear[1:]} L"
    return f"{terms} {quadratic[0]} {quadratic[1:]} L²"
