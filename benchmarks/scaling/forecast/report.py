"""The generated part of the page on scaling, from the rows in `results/`."""

from pathlib import Path

from benchmarks.scaling.forecast.bottlenecks import bottlenecks
from benchmarks.scaling.forecast.forecast_rows import (
    BYTES_PER_GRADIENT,
    find_row,
    gradient_options,
    growing_batch_rows,
    max_parts,
    network_speeds,
)
from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import markdown_table, measured_when_and_where

RESULTS = Path(__file__).parents[1] / "results"


def scaling_report(results=RESULTS):
    """Returns the Markdown blocks of the newest rows; none without rows."""
    measured, predicted = (
        _newest_run(Path(results) / f"scaling_{name}.csv")
        for name in ("measured", "predicted")
    )
    if not measured or not predicted:
        return []
    return [
        "### Measured on local workers",
        _conditions(measured),
        _steps_table(measured),
        _fit_text(measured),
        "### Forecast for GPUs, from assumptions",
        *_assumptions(predicted),
        *(
            _forecast(preset, predicted)
            for preset in dict.fromkeys(r["preset"] for r in predicted)
        ),
        "### What limits the speed first, and what helps",
        *bottlenecks(measured, predicted),
    ]


def _newest_run(path):
    """Returns the rows that were written together last, numbers as floats."""
    rows = read_rows(path)
    last = [row for row in rows if row["run"] == rows[-1]["run"]]
    return [{name: _number(x) for name, x in row.items()} for row in last]


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def _conditions(rows):
    row = rows[0]
    return (
        f"{measured_when_and_where(rows)} TensorFlow {row['tensorflow']}, "
        f"Keras {row['keras']}; {row['model']}, {row['parameters']:,.0f} "
        f"parameters; median of {row['rounds']:.0f} rounds of "
        f"{row['updates']:.0f} updates; one thread per worker."
    )


def _steps_table(rows):
    columns = {
        "workers": ("workers", ",.0f"),
        "workers per core": ("workers_per_core", ",.0f"),
        "target tokens per replica": ("tokens_per_replica", ",.0f"),
        "time per update (ms)": ("ms_median", ",.1f"),
        "time by the formula (ms)": ("model_ms", ",.1f"),
        "target tokens/s": ("tokens_per_second", ",.0f"),
    }
    steps = [row for row in rows if row["quantity"] == "step"]
    lines = [
        [f"{row[name]:{form}}" for name, form in columns.values()]
        for row in steps
    ]
    return markdown_table(columns, lines)


def _fit_text(rows):
    row = rows[0]
    deviations = [
        row["model_ms"] / row["ms_median"] - 1
        for row in rows
        if row["quantity"] == "step" and row["workers"] > 1
    ]
    all_reduce_errors = [
        abs(row["model_ms"] / row["ms_median"] - 1)
        for row in rows
        if row["quantity"] == "all_reduce"
    ]
    return (
        f"Fitted to the updates of one worker: overhead "
        f"{row['fit_overhead_ms']:.1f} ms and {row['fit_us_per_token']:.1f} µs "
        "per target token. Fitted to separate all-reduces: latency "
        f"{row['fit_latency_us']:,.0f} µs per stage and "
        f"{row['fit_mb_per_second']:,.0f} MB/s, with errors of up to "
        f"{max(all_reduce_errors):.0%}. The updates of several workers were "
        "not used for the fit; the formula's times differ from the measured "
        f"ones by {min(deviations):+.0%} to {max(deviations):+.0%}."
        f"{_traffic_text(rows)}"
    )


def _traffic_text(rows):
    excess = [
        row["loopback_bytes"] / row["ring_bytes"] - 1
        for row in rows
        if row["quantity"] == "step" and row["loopback_bytes"]
        if row["ring_bytes"]
    ]
    if not excess:
        return ""
    return (
        " The bytes counted on the loopback interface are "
        f"{min(excess):.1%} to {max(excess):.1%} more than those of a ring."
    )


def _assumptions(rows):
    row = rows[0]
    weak = growing_batch_rows(rows)
    strong = [r for r in rows if r["scaling"] == "strong"]
    yield (
        "No GPU was measured. **Assumed** are a peak of "
        f"{row['gpu_tflops']:,.0f} TFLOP/s, of which {row['utilisation']:.0%} "
        f"are reached; {row['overhead_ms']:g} ms of overhead per update; "
        f"{row['latency_us']:g} µs per stage; {row['gpus_per_machine']:.0f} "
        f"GPUs per machine with {row['machine_gbit']:,.0f} Gbit/s between "
        "them; and between machines the Gbit/s in the column's heading, per "
        "machine. **Taken from the code** are the "
        f"{row['collectives']:.0f} all-reduces per update, counted in its "
        "graph, and the number of parameters."
    )
    yield (
        "Each cell of the three middle columns has the target tokens/s with "
        f"{weak[0]['tokens_per_replica']:,.0f} tokens per GPU and float32 "
        "gradients, and the efficiency of four options in this order: float32 "
        "gradients, as in the code; gradients of half the bytes; float32 "
        f"gradients accumulated over {max_parts(rows):.0f} parts; both. "
        "Efficiency is the throughput divided by that of the same number of "
        "separate GPUs. The last column has the target tokens/s if the global "
        f"batch stays at {strong[0]['global_tokens']:,.0f} tokens, with "
        "float32 gradients and the fastest network."
    )


def _forecast(preset, rows):
    networks = network_speeds(rows)
    lines = []
    for gpus in sorted({row["gpus"] for row in rows}):
        line = [f"{gpus:,.0f}"]
        for gbit in networks:
            ways = gradient_options(rows, preset, gpus, gbit)
            shares = " / ".join(f"{100 * w['efficiency']:.0f}" for w in ways)
            tokens = ways[0]["tokens_per_second"]
            line.append(f"{tokens / 1e3:,.0f}k; {shares} %")
        fixed = find_row(
            rows,
            preset=preset,
            gpus=gpus,
            network_gbit=networks[-1],
            scaling="strong",
            bytes_per_gradient=BYTES_PER_GRADIENT,
        )
        line.append(f"{fixed['tokens_per_second'] / 1e3:,.0f}k")
        lines.append(line)
    parameters = find_row(rows, preset=preset)["parameters"]
    headings = [
        f"GPUs, `{preset}` ({parameters / 1e6:.0f} M)",
        *(f"{gbit:,.0f} Gbit/s" for gbit in networks),
        "fixed global batch",
    ]
    return markdown_table(headings, lines)
