"""The table of training in bfloat16."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    decimals,
    newest_rows,
    ratio,
    table_section,
)

RESULTS = Path(__file__).parents[1] / "speed" / "results"
WAYS = {
    "float32": "float32, one program of XLA",
    "bfloat16": "**bfloat16**",
    "bfloat16, one program": "bfloat16, one program of XLA",
    "bfloat16, all autoclustered": "bfloat16, all autoclustered",
    "torch float32": "PyTorch, float32",
    "torch bfloat16": "PyTorch, bfloat16",
}


def bfloat16_tables():
    """Returns the Markdown blocks of the table."""
    path = RESULTS / "training_bfloat16.csv"
    rows = read_rows(path) if path.exists() else []
    rows = newest_rows(rows, "model", "way")
    instructions = sorted({row["instructions"] for row in rows})
    return table_section(
        "Training in bfloat16",
        rows,
        {
            "Transformer": dimensions_with_batch,
            "step": lambda row: WAYS[row["way"]],
            "an update (ms)": lambda row: count(row["milliseconds_median"]),
            "range (ms)": lambda row: (
                f"{count(row['milliseconds_min'])} to "
                f"{count(row['milliseconds_max'])}"
            ),
            "speed relative to float32": lambda row: ratio(
                row["speed_to_float32"]
            ),
            "to PyTorch in bfloat16": lambda row: ratio(
                row["speed_to_torch_bfloat16"]
            ),
            "first update (s)": lambda row: decimals(row["first_seconds"], 1),
            "memory (MiB)": lambda row: count(row["memory_mib"]),
        },
        "Instructions for bfloat16 of the processor: "
        f"{', '.join(instructions)}.",
    )


def dimensions_with_batch(row):
    """Describes the sizes of a row's model and of its batch."""
    layers = row["num_layers"]
    return (
        f"{layers}+{layers} layers, width {row['hidden_dim']}, "
        f"{row['batch_size']} x {row['length']} tokens"
    )
