"""Target tokens per second of our training step against PyTorch's.

    python benchmarks/training_throughput.py

Worker processes take turns on the same random batch: one with
`torch.nn.Transformer`, and one with our `Transformer` of the same dimensions
(embeddings, positions, tied output matrix, dropout, label smoothing and Adam
included) under XLA for each way of running the step: plain; under a
`MirroredStrategy` of one and of two logical devices; in two parts whose
gradients are accumulated; in mixed_bfloat16. The global batch is the same. A
round of our step and a matrix product under XLA of the same numbers, also in
turns, gives the fraction of the peak that the step's matrix products reach.
Warm-up steps are not counted. Medians and ranges go to
`results/training_throughput.csv`, one row a configuration and way.
"""

import argparse
import contextlib
import json
import statistics
import time
from pathlib import Path

from results_table import append_rows, origin
from throughput_steps import (
    CONFIGURATIONS,
    PEAK_SIZE,
    VARIANTS,
    keras_steps,
    step_flops,
    torch_steps,
)
from worker_process import WorkerProcess, answer_questions

WARM_UP = 2  # the first one compiles
TORCH = "torch"


def work(name, variant):
    """Answers `["time", function]` with the seconds of a call."""
    c = CONFIGURATIONS[name]
    if variant == TORCH:
        functions = torch_steps(c)
    else:
        functions = keras_steps(c, **VARIANTS[variant])

    def seconds(function):
        start = time.perf_counter()
        functions[function]()
        return time.perf_counter() - start

    answer_questions({"time": seconds})


def measure(name, variants, rounds):
    """Measures one configuration; gives its rows, one a variant."""
    steps, products = {}, {}
    with contextlib.ExitStack() as stack:
        workers = {
            side: stack.enter_context(
                WorkerProcess(__file__, "--only", name, "--worker", side)
            )
            for side in (*variants, TORCH)
        }
        for _ in range(WARM_UP + rounds):
            for side, worker in workers.items():
                if side != TORCH:
                    best = min(worker("time", "product") for _ in range(5))
                    products.setdefault(side, []).append(best)
                seconds = worker("time", "step")
                steps.setdefault(side, []).append(seconds)
    steps, products = (
        {side: found[WARM_UP:] for side, found in times.items()}
        for times in (steps, products)
    )
    return [
        _row(name, variant, steps, products[variant], rounds)
        for variant in variants
    ]


def _row(name, variant, steps, products, rounds):
    c, way = CONFIGURATIONS[name], VARIANTS[variant]
    tokens = c["batch_size"] * c["length"]
    flops = step_flops(c)
    ours = steps[variant]
    ratios = _ratios(steps[TORCH], ours)
    peaks = [2 * PEAK_SIZE**3 / t for t in products]
    shares = [flops / k / p for k, p in zip(ours, peaks, strict=True)]
    return {
        **origin("tensorflow", "keras", "torch"),
        "dtype": way.get("dtype", "float32"),
        "model": name,
        **c,
        "rounds": rounds,
        "keras_tokens_per_second": round(tokens / statistics.median(ours)),
        "torch_tokens_per_second": round(
            tokens / statistics.median(steps[TORCH])
        ),
        **_range("ratio", ratios),
        "peak_gflops_median": round(statistics.median(peaks) / 1e9, 1),
        **_range("peak_fraction", shares),
        "seed": 0,
        "variant": variant,
        "replicas": way.get("replicas", 1),
        "parts": way.get("parts", 1),
        **_range("ratio_to_plain", _ratios(steps["plain"], ours)),
    }


def _ratios(slower, faster):
    return [s / f for s, f in zip(slower, faster, strict=True)]


def _range(name, values):
    return {
        f"{name}_median": round(statistics.median(values), 3),
        f"{name}_min": round(min(values), 3),
        f"{name}_max": round(max(values), 3),
    }


def main():
    """Measures every configuration, or does a worker's job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CONFIGURATIONS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=VARIANTS,
        default=list(VARIANTS),
        help="ways of our step; the plain one is always there",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "training_throughput.csv",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.only, options.worker)
        return
    wanted = {"plain", *options.variants}
    variants = [variant for variant in VARIANTS if variant in wanted]
    names = [options.only] if options.only else list(CONFIGURATIONS)
    for name in names:
        rows = measure(name, variants, options.rounds)
        append_rows(options.output, rows)
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
