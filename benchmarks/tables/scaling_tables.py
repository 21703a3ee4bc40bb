"""The table of training on several workers."""

from pathlib import Path

from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import markdown_table, measured_when_and_where

RESULTS = Path(__file__).parents[1] / "scaling" / "results"


def scaling_tables(results=RESULTS):
    """Returns the Markdown blocks of the newest rows; none without rows."""
    measured = _newest_run(Path(results) / "scaling_measured.csv")
    if not measured:
        return []
    return [
        "### Measured on local workers",
        _conditions(measured),
        _steps_table(measured),
        _fit_text(measured),
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
