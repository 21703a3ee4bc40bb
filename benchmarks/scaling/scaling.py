"""Training on 1, 2 and 4 local workers, and a forecast for many GPUs.

    python benchmarks/scaling/scaling.py

Every worker is a process of a `MultiWorkerMirroredStrategy` over the loopback
interface, with one thread on one core; if there are more workers than cores,
they share cores. The clusters alternate: 1, 2, 4, 1, 2, 4, ... workers. What is
measured, and what the fitted formula predicts for it, is appended to
`results/scaling_measured.csv`; the forecast, which rests on assumptions, is
appended to `results/scaling_predicted.csv`. The formula is in
`forecast/update_time.py`.
"""

import argparse
import contextlib
import datetime
import json
import statistics
import sys
from dataclasses import asdict, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.scaling.forecast.update_time import (
    Assumptions,
    all_reduce_seconds,
    fit_compute,
    fit_network,
    predict,
    step_seconds,
)
from benchmarks.scaling.measuring.cluster import WORKER, Cluster
from benchmarks.shared.result_rows import append_rows, provenance
from benchmarks.shared.step_flops import step_flops
from benchmarks.shared.worker_process import WorkerProcess

FOLDER = Path(__file__).parent
# Sizes of the measured all-reduces, besides that of the gradients.
REDUCED_BYTES = (2**10, 2**18, 2**20, 2**22)
PRESETS = ("transformer_base", "transformer_big")
VOCABULARY_SIZE = 32_000


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
    return rows, parameters, max(collectives.values())


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


def measure_reading():
    """Measures how fast one process reads global batches; returns its row."""
    with WorkerProcess(WORKER) as worker:
        speed = worker("reading", 20_000, 32_768, 8, 100)
    row = _row("reading", 1, [0.0]) | {"tokens_per_second": speed}
    return row | dict.fromkeys(("ms_median", "ms_min", "ms_max"), "")


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


def predictions(options, collectives):
    """Forecasts each preset for each number of GPUs and each network."""
    import keras_deepnmt

    assumptions = Assumptions(
        **{
            field.name: getattr(options, field.name)
            for field in fields(Assumptions)
        }
    )
    rows = []
    for preset in PRESETS:
        model = keras_deepnmt.create_model(
            preset, VOCABULARY_SIZE, VOCABULARY_SIZE, share_embeddings=True
        )
        config = model.get_config()
        flops = step_flops(
            {
                **config,
                "num_layers": config["num_encoder_layers"],
                "vocabulary_size": VOCABULARY_SIZE,
                "batch_size": 1,
                "length": options.predicted_length,
            }
        )
        common = {
            "flops_per_token": flops / options.predicted_length,
            "parameters": model.count_params(),
            "collectives": collectives,
        }
        for gpus in options.gpus:
            fixed_share = options.global_tokens / gpus
            ways = [
                *(("weak", options.tokens, parts) for parts in options.parts),
                ("strong", fixed_share, 1),
            ]
            for gbit in options.network_gbit:
                for size in (4, 2):
                    for kind, tokens, parts in ways:
                        row = predict(
                            assumptions,
                            gpus=gpus,
                            network_gbit=gbit,
                            bytes_per_gradient=size,
                            tokens=tokens,
                            parts=parts,
                            **common,
                        )
                        named = {"preset": preset, "scaling": kind}
                        rows.append(named | common | row)
    return rows


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
    forecast = parser.add_argument_group("assumptions of the forecast")
    add = forecast.add_argument
    add("--gpus", type=int, nargs="+", default=[2**k for k in range(3, 11)])
    add("--network-gbit", type=float, nargs="+", default=[10, 100, 1_600])
    add(
        "--tokens",
        type=int,
        default=4_096,
        help="tokens per GPU and part",
    )
    add(
        "--parts", type=int, nargs="+", default=[1, 8], help="accumulated parts"
    )
    add(
        "--global-tokens",
        type=int,
        default=524_288,
        help="tokens of a fixed global batch",
    )
    add("--predicted-length", type=int, default=32, help="tokens per row")
    for name, value in asdict(Assumptions()).items():
        add(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return parser.parse_args()


def _rounded(row):
    return {
        name: float(f"{value:.6g}") if isinstance(value, float) else value
        for name, value in row.items()
    }


def main():
    """Measures, fits and forecasts."""
    options = arguments()
    rows, parameters, collectives = measure(options)
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
    rows.append({**dict.fromkeys(rows[0], ""), **measure_reading()})
    append_rows(
        options.output / "scaling_measured.csv",
        [_rounded(common | how | row) for row in rows],
    )
    append_rows(
        options.output / "scaling_predicted.csv",
        [_rounded(common | r) for r in predictions(options, collectives)],
    )
    for row in map(_rounded, rows):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
