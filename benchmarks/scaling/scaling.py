"""Training on 1, 2 and 4 local workers.

    python benchmarks/scaling/scaling.py

Every worker is a process of a `MultiWorkerMirroredStrategy` over the loopback
interface, with one thread on one core; if there are more workers than cores,
they share cores. The clusters alternate: 1, 2, 4, 1, 2, 4, ... workers. The
measurements, and the predictions of the fitted formula, are appended to
`results/scaling_measured.csv`. The formula is in `measuring/update_time.py`.
"""

import argparse
import contextlib
import datetime
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.scaling.measuring.cluster import Cluster
from benchmarks.scaling.measuring.update_time import (
    all_reduce_seconds,
    fit_compute,
    fit_network,
    step_seconds,
)
from benchmarks.shared.result_rows import append_rows, provenance

FOLDER = Path(__file__).parent
# Sizes of the measured all-reduces, besides that of the gradients.
REDUCED_BYTES = (2**10, 2**18, 2**20, 2**22)


def measure(options):
    """Measures the clusters alternately; returns rows without predictions."""
    with contextlib.ExitStack() as stack:
        clusters = {
            n: stack.enter_context(Cluster(n, options.length, options.seed))
            for n in options.workers
        }
        parameters = clusters[min(clusters)]("parameters")[0]
        collectives = {
            n: cluster("collectives", options.rows[0])[0]
            for n, cluster in clusters.items()
        }
        steps, all_reduces = _measure_alternately(clusters, parameters, options)
    rows = [
        _step_row(n, rows * options.length, answers, parameters, collectives[n])
        for (n, rows), answers in steps.items()
    ]
    for (n, num_bytes), answers in all_reduces.items():
        row = _row("all_reduce", n, [seconds for seconds, _ in answers])
        rows.append(row | {"bytes": num_bytes})
    for row in rows:
        row["workers_per_core"] = clusters[row["workers"]].workers_per_core
    return rows, parameters


def _measure_alternately(clusters, parameters, options):
    """Returns the answers of the clusters in all rounds."""
    for cluster in clusters.values():  # compiles before anything is timed
        for rows in options.rows:
            cluster("step", rows, 1)
    steps, all_reduces = {}, {}
    for _ in range(options.rounds):
        for rows in options.rows:
            for n, cluster in clusters.items():
                answer = cluster("step", rows, options.updates)
                steps.setdefault((n, rows), []).append(answer)
        for num_bytes in (*REDUCED_BYTES, 4 * parameters):
            for n, cluster in clusters.items():
                if n > 1:
                    answer = cluster("reduce", num_bytes, 2)
                    all_reduces.setdefault((n, num_bytes), []).append(answer)
    return steps, all_reduces


def _row(quantity, workers, seconds):
    return {
        "quantity": quantity,
        "workers": workers,
        "workers_per_core": "",
        "tokens_per_replica": "",
        "bytes": "",
        "collectives": "",
        "ms_median": 1e3 * statistics.median(seconds),
        "ms_min": 1e3 * min(seconds),
        "ms_max": 1e3 * max(seconds),
        "deviation": "",
        "tokens_per_second": "",
        "loopback_bytes": "",
        "ring_bytes": "",
    }


def _step_row(n, tokens, answers, parameters, collectives):
    means = [statistics.fmean(updates) for updates, _ in answers]
    traffic = [sent / len(updates) for updates, sent in answers]
    deviations = [
        statistics.stdev(updates) / mean
        for (updates, _), mean in zip(answers, means, strict=True)
    ]
    return _row("step", n, means) | {
        "tokens_per_replica": tokens,
        "bytes": 4 * parameters if n > 1 else 0,
        "collectives": collectives,
        "deviation": statistics.median(deviations),
        "tokens_per_second": n * tokens / statistics.median(means),
        "loopback_bytes": round(statistics.median(traffic)),
        # The bytes that all n workers send: n times 2 (n - 1) / n.
        "ring_bytes": 2 * (n - 1) * 4 * parameters,
    }


def fit(rows):
    """Fits the formula, and adds its parameters and predictions to the rows.

    The compute time is fitted to the updates of one worker, the network to the
    separate all-reduces; the updates of several workers are not used for the
    fit.
    """
    steps = [row for row in rows if row["quantity"] == "step"]
    alone = [row for row in steps if row["workers"] == 1]
    reduces = [row for row in rows if row["quantity"] == "all_reduce"]
    compute = fit_compute(
        [row["tokens_per_replica"] for row in alone],
        [row["ms_median"] / 1e3 for row in alone],
    )
    network = fit_network(
        [row["workers"] for row in reduces],
        [row["bytes"] for row in reduces],
        [row["ms_median"] / 1e3 for row in reduces],
    )
    for row in rows:
        n, is_fitted, seconds = row["workers"], row in alone + reduces, None
        if row["quantity"] == "all_reduce":
            seconds = all_reduce_seconds(n, row["bytes"], network)
        elif row["quantity"] == "step":
            tokens, small = row["tokens_per_replica"], row["collectives"]
            seconds = step_seconds(
                n, tokens, row["bytes"], compute, network, max(small, 1)
            )
            # Workers that share a core compute one after the other.
            others = row["workers_per_core"] - 1
            seconds += others * compute.seconds(tokens)
        row["is_fitted"] = is_fitted
        row["model_ms"] = "" if seconds is None else 1e3 * seconds
        row["fit_overhead_ms"] = 1e3 * compute.overhead
        row["fit_us_per_token"] = 1e6 * compute.per_token
        row["fit_latency_us"] = 1e6 * network.latency
        row["fit_mb_per_second"] = network.bandwidth / 1e6


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--updates", type=int, default=10, help="updates per measurement")
    add("--workers", type=int, nargs="+", default=[1, 2, 4])
    add(
        "--rows",
        type=int,
        nargs="+",
        default=[16, 32, 64],
        help="rows per worker",
    )
    add("--length", type=int, default=24, help="tokens per row")
    add("--seed", type=int, default=0)
    add("--output", type=Path, default=FOLDER / "results")
    return parser.parse_args()


def _rounded(row):
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row.items()
    }


def main():
    """Measures and fits."""
    options = arguments()
    rows, parameters = measure(options)
    fit(rows)
    common = {
        "run": datetime.datetime.now().isoformat(timespec="seconds"),
        **provenance("tensorflow", "keras"),
        "seed": options.seed,
    }
    how = {
        "model": "transformer_tiny, 2+2 layers",
        "parameters": parameters,
        "threads_per_worker": 1,
        "rounds": options.rounds,
        "updates": options.updates,
    }
    append_rows(
        options.output / "scaling_measured.csv",
        [_rounded(common | how | row) for row in rows],
    )
    for row in map(_rounded, rows):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
