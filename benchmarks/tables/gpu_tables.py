"""The table of training on a GPU."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.bfloat16_tables import dimensions_with_batch
from benchmarks.tables.markdown import (
    count,
    decimals,
    listed,
    newest_rows,
    ratio,
    ratio_range,
    table_section,
)

RESULTS = Path(__file__).parents[1] / "speed" / "results"
WAYS = {
    "bfloat16": "**mixed_bfloat16, JAX**",
    "torch bfloat16": "PyTorch, bfloat16",
    "float32": "float32, JAX",
}


def gpu_tables():
    """Returns the Markdown blocks of the table."""
    rows = read_rows(RESULTS / "training_gpu.csv")
    rows = newest_rows(
        rows, *("device", "model", "batch_size", "length", "way", "flags")
    )
    # The device, not the processor beside it, is what has been measured.
    rows = [row | {"machine": f"one {row['device']}"} for row in rows]
    peaks = [
        f"{_peak(rows, device)} TFLOP/s on one {device}"
        for device in sorted({row["device"] for row in rows})
    ]
    return table_section(
        "Training on a GPU",
        rows,
        {
            "Transformer": dimensions_with_batch,
            "step": lambda row: WAYS[row["way"]],
            "flags": lambda row: f"`{row['flags']}`" if row["flags"] else "",
            "target tokens/s": lambda row: count(row["tokens_per_second"]),
            "an update (ms)": lambda row: decimals(
                row["milliseconds_median"], 1
            ),
            "speed relative to PyTorch": lambda row: ratio(
                row["speed_to_torch_median"]
            ),
            "range over rounds": lambda row: (
                ratio_range(row, "speed_to_torch")
                if row["speed_to_torch_median"]
                else ""
            ),
            "fraction of the peak": lambda row: (
                f"{float(row['peak_fraction_median']):.0%}"
            ),
            "first update (s)": lambda row: decimals(row["first_seconds"], 0),
            "memory (MiB)": lambda row: (
                count(row["memory_mib"]) if row["memory_mib"] else ""
            ),
        },
        "The peak is the measured speed of one large product in bfloat16: "
        f"{listed(peaks)}."
        if peaks
        else "",
    )


def _peak(rows, device):
    """Formats the peak of a device, or the least and the greatest one."""
    found = sorted(
        round(float(row["peak_tflops"]))
        for row in rows
        if row["device"] == device
    )
    low, high = found[0], found[-1]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
