"""The tables of training in bfloat16, beside float32 and PyTorch."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    decimals,
    markdown_table,
    measured_when_and_where,
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
    rows = _rows()
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


def training_speed_summary():
    """Returns a short table of training speed, for the project's README."""
    steps = {(row["model"], row["way"]): row for row in _rows()}
    headings = [
        "Transformer",
        "precision",
        "keras_deepnmt (target tokens/s)",
        "PyTorch (target tokens/s)",
        "speed relative to PyTorch",
    ]
    cells = []
    for (model, way), row in steps.items():
        if not way.startswith("torch "):
            continue
        precision = way.removeprefix("torch ")
        ours = steps[model, precision]
        speed = float(row["milliseconds_median"]) / float(
            ours["milliseconds_median"]
        )
        cells.append(
            [
                dimensions_with_batch(row),
                precision,
                count(ours["tokens_per_second"]),
                count(row["tokens_per_second"]),
                ratio(speed),
            ]
        )
    return [
        "Training speed compared with `torch.nn.Transformer` "
        "([more](benchmarks/speed/README.md)). "
        f"{measured_when_and_where(list(steps.values()))} "
        "The processor multiplies bfloat16 by instructions of its own. "
        "PyTorch computes operation by operation, without `torch.compile`. "
        "In float32 the ratio depends on the processor and the batch: see the "
        "ranges there.",
        markdown_table(headings, cells),
    ]


def _rows():
    """Returns the newest row of each model and step."""
    path = RESULTS / "training_bfloat16.csv"
    rows = read_rows(path) if path.exists() else []
    return newest_rows(rows, "model", "way")


def dimensions_with_batch(row):
    """Describes the sizes of a row's model and of its batch."""
    layers = row["num_layers"]
    return (
        f"{layers}+{layers} layers, width {row['hidden_dim']}, "
        f"{row['batch_size']} x {row['length']} tokens"
    )
