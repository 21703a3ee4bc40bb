"""Writes the numbers on many machines into this folder's README.

python benchmarks/scaling/forecast/report.py
"""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.scaling.forecast.bottlenecks import breaks
from benchmarks.scaling.forecast.forecast_rows import (
    BYTES_PER_GRADIENT,
    find,
    most_parts,
    networks_of,
    ways_of,
    weak_of,
)

FOLDER = Path(__file__).parents[1]
README = FOLDER.parent / "README.md"
START, END = "<!-- scaling -->", "<!-- /scaling -->"


def section(results=FOLDER / "results"):
    """Gives the generated part of the page, between its two marks.

    Args:
        results: folder of the CSV files; without them there is nothing to say.
    """
    measured, predicted = (
        _newest_run(Path(results) / f"scaling_{name}.csv")
        for name in ("measured", "predicted")
    )
    parts = []
    if measured and predicted:
        parts = [
            "### What was measured",
            _origin(measured[0]),
            _steps_table(measured),
            _fit_text(measured),
            "### What follows for GPUs, from assumptions",
            _assumptions(predicted),
            *(
                _forecast(preset, predicted)
                for preset in dict.fromkeys(r["preset"] for r in predicted)
            ),
            "### Where it breaks first, and what then helps",
            *breaks(measured, predicted),
        ]
    return "\n\n".join([START, *parts, END])


def _newest_run(path):
    """Reads the rows that were written last together, numbers as numbers."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    last = [row for row in rows if row["run"] == rows[-1]["run"]]
    return [{name: _number(x) for name, x in row.items()} for row in last]


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _origin(row):
    return (
        f"{row['date']}, commit {row['commit']}, {row['machine']}, TensorFlow "
        f"{row['tensorflow']}, Keras {row['keras']}: {row['model']} of "
        f"{row['parameters']:,.0f} numbers, {row['rounds']:.0f} rounds of "
        f"{row['updates']:.0f} updates in turns, one thread a worker."
    )


def _steps_table(rows):
    head = [
        "workers",
        "workers a core",
        "target tokens a replica",
        "ms an update",
        "ms by the formula",
        "target tokens/s",
        "bytes on loopback",
        "bytes of a ring",
    ]
    names = [
        ("workers", ",.0f"),
        ("workers_per_core", ",.0f"),
        ("tokens_per_replica", ",.0f"),
        ("ms_median", ",.1f"),
        ("model_ms", ",.1f"),
        ("tokens_per_second", ",.0f"),
        ("loopback_bytes", ",.0f"),
        ("ring_bytes", ",.0f"),
    ]
    steps = [row for row in rows if row["quantity"] == "step"]
    return _table(
        head, [[f"{row[name]:{form}}" for name, form in names] for row in steps]
    )


def _fit_text(rows):
    row = rows[0]
    tests = [
        row["model_ms"] / row["ms_median"] - 1
        for row in rows
        if row["quantity"] == "step" and row["workers"] > 1
    ]
    reduces = [
        abs(row["model_ms"] / row["ms_median"] - 1)
        for row in rows
        if row["quantity"] == "all_reduce"
    ]
    return (
        f"Fitted: overhead {row['fit_overhead_ms']:.1f} ms and "
        f"{row['fit_us_per_token']:.1f} µs a target token, to the updates of "
        f"one worker; latency {row['fit_latency_us']:,.0f} µs a stage and "
        f"{row['fit_mb_per_second']:,.0f} MB/s, to all-reduces alone (within "
        f"{max(reduces):.0%}). The updates of several workers took no part in "
        "the fit: beside what was measured the formula says between "
        f"{min(tests):+.0%} and {max(tests):+.0%}."
    )


def _assumptions(rows):
    row = rows[0]
    weak = weak_of(rows)
    strong = [r for r in rows if r["scaling"] == "strong"]
    return (
        "No GPU was measured. **Assumed**: a peak of "
        f"{row['gpu_tflops']:,.0f} TFLOP/s of which {row['utilisation']:.0%} "
        f"are reached, {row['overhead_ms']:g} ms of overhead an update, "
        f"{row['latency_us']:g} µs a stage, {row['gpus_per_machine']:.0f} GPUs "
        f"a machine with {row['machine_gbit']:,.0f} Gbit/s between them, and "
        "between machines the Gbit/s of each column (of a whole machine). "
        f"Taken from the code: {row['collectives']:.0f} all-reduces an update, "
        "counted in its graph, and the parameters. A cell has the target "
        f"tokens/s of {weak[0]['tokens_per_replica']:,.0f} tokens a GPU, and "
        "the efficiency (throughput over that of as many single GPUs with the "
        "same tokens an update each) of four ways: float32 gradients as the "
        f"code sends them; half the bytes; {most_parts(rows):.0f} parts "
        "accumulated; both. The last column holds the global batch at "
        f"{strong[0]['global_tokens']:,.0f} tokens, float32, on the fastest "
        "network."
    )


def _forecast(preset, rows):
    networks = networks_of(rows)
    lines = []
    for gpus in sorted({row["gpus"] for row in rows}):
        line = [f"{gpus:,.0f}"]
        for gbit in networks:
            ways = ways_of(rows, preset, gpus, gbit)
            shares = " / ".join(f"{100 * w['efficiency']:.0f}" for w in ways)
            tokens = ways[0]["tokens_per_second"]
            line.append(f"{tokens / 1e3:,.0f}k; {shares} %")
        fixed = find(
            rows,
            preset=preset,
            gpus=gpus,
            network_gbit=networks[-1],
            scaling="strong",
            bytes_per_gradient=BYTES_PER_GRADIENT,
        )
        line.append(f"{fixed['tokens_per_second'] / 1e3:,.0f}k")
        lines.append(line)
    parameters = find(rows, preset=preset)["parameters"]
    head = [
        f"GPUs, `{preset}` ({parameters / 1e6:.0f}M)",
        *(f"{gbit:,.0f} Gbit/s" for gbit in networks),
        "fixed batch",
    ]
    return _table(head, lines)


def main():
    """Replaces the section in README."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(START)
    after = rest.split(END)[1]
    README.write_text(before + section() + after, encoding="utf-8")


if __name__ == "__main__":
    main()
