"""Training speed: target tokens per second, compared with PyTorch.

    python benchmarks/speed/training_throughput.py
    python benchmarks/speed/training_throughput.py --only conv
    python benchmarks/speed/training_throughput.py --only 4+4x128 --old PATH

Worker processes alternate on the same random batch: one runs
`torch.nn.Transformer`, the others run our `Transformer` of the same dimensions
(embeddings, positions, tied output matrix, dropout, label smoothing and Adam
included) under XLA, one process for each way of running the step: plain; under
a `MirroredStrategy` of one and of two logical devices; with gradients
accumulated over two parts of the batch; in mixed_bfloat16. The global batch is
the same for all. All processes, that of PyTorch too, keep freed memory as
`deepnmt train` does. In each round a matrix product of the same dtype is timed
under XLA as well: its speed is the peak, of which the step's matrix products
reach a fraction.

The convolutional configurations have no counterpart in PyTorch: the residual
baseline and the dense models of its size alternate, with the optimizer of Shen
et al. (2018), and the "ratio to plain" compares them with the baseline.

With `--old`, the plain step of a Transformer alternates with that of another
checkout of this repository instead, without PyTorch.

Warm-up steps are excluded. Medians and ranges are appended to
`results/training_throughput.csv`, one row for each configuration and way.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import (
    append_rows,
    git_commit,
    provenance,
    range_columns,
)
from benchmarks.shared.step_flops import step_flops
from benchmarks.shared.worker_process import (
    REPOSITORY,
    WorkerProcess,
    answer_questions,
)
from benchmarks.speed.measuring.training_steps import (
    CONFIGURATIONS,
    GROUPS,
    PEAK_SIZE,
    PRESET_CONFIGURATIONS,
    VARIANTS,
    keras_steps,
    preset_steps,
    torch_steps,
)
from keras_deepnmt.training import keep_freed_memory

WARM_UP = 2  # the first one compiles
TORCH = "torch"
BEFORE = "plain before"
SCRIPT = Path(__file__).resolve().relative_to(REPOSITORY)
LEAST_RATIO = 0.85  # target: a dense model's tokens/s over the baseline's


def run_worker(name, variant):
    """Answers requests `["time", function]` with the seconds of a call."""
    keep_freed_memory()
    if name in PRESET_CONFIGURATIONS:
        functions = preset_steps(PRESET_CONFIGURATIONS[name], variant)
    elif variant == TORCH:
        functions = torch_steps(CONFIGURATIONS[name])
    else:
        functions = keras_steps(CONFIGURATIONS[name], **VARIANTS[variant])

    def seconds(function):
        start = time.perf_counter()
        functions[function]()
        return time.perf_counter() - start

    answer_questions({"time": seconds})


def measure(name, variants, rounds):
    """Measures one configuration; returns one row for each variant."""
    sides = dict.fromkeys([*variants, TORCH], REPOSITORY)
    steps, products = _measure_alternately(name, sides, variants, rounds)
    return [
        _row(name, variant, steps, products[variant], rounds)
        for variant in variants
    ]


def measure_presets(name, rounds):
    """Measures presets alternately; returns their rows, baseline first."""
    presets = PRESET_CONFIGURATIONS[name]["presets"]
    sides = dict.fromkeys(presets, REPOSITORY)
    steps, _ = _measure_alternately(name, sides, [], rounds)
    return [make_preset_row(name, preset, steps, rounds) for preset in presets]


def measure_checkouts(name, old, rounds):
    """Measures the plain step of this checkout and of another one.

    Returns a row for each; the other one's `ratio_to_plain` is its speed
    divided by ours.
    """
    sides = {"plain": REPOSITORY, BEFORE: old}
    steps, products = _measure_alternately(name, sides, ["plain"], rounds)
    rows = [
        _row(name, side, steps, products["plain"], rounds) for side in sides
    ]
    rows[1] |= {"commit": git_commit(old), "variant": BEFORE}
    return rows


def _measure_alternately(name, sides, with_products, rounds):
    """Times steps and products alternately; returns seconds by side.

    `sides` has the checkout of each side.
    """
    steps, products = {}, {}
    with contextlib.ExitStack() as stack:
        workers = {
            side: stack.enter_context(
                WorkerProcess(
                    *(checkout / SCRIPT, "--only", name, "--worker"),
                    "plain" if side == BEFORE else side,
                    PYTHONPATH=str(checkout),
                )
            )
            for side, checkout in sides.items()
        }
        for _ in range(WARM_UP + rounds):
            for side, worker in workers.items():
                if side in with_products:
                    best = min(worker("time", "product") for _ in range(5))
                    products.setdefault(side, []).append(best)
                seconds = worker("time", "step")
                steps.setdefault(side, []).append(seconds)
    return (
        {side: times[WARM_UP:] for side, times in seconds_of.items()}
        for seconds_of in (steps, products)
    )


def _row(name, variant, steps, products, rounds):
    sizes, way = CONFIGURATIONS[name], VARIANTS.get(variant, {})
    tokens = sizes["batch_size"] * sizes["length"]
    flops = step_flops(sizes)
    ours, torch = steps[variant], steps.get(TORCH)
    ratios = _ratios(torch, ours) if torch else []
    peaks = [2 * PEAK_SIZE**3 / t for t in products]
    shares = [flops / k / p for k, p in zip(ours, peaks, strict=True)]
    return {
        **provenance("tensorflow", "keras", *(["torch"] if torch else [])),
        **({} if torch else {"torch": ""}),
        "dtype": way.get("dtype", "float32"),
        "model": name,
        **sizes,
        "rounds": rounds,
        "keras_tokens_per_second": round(tokens / statistics.median(ours)),
        "torch_tokens_per_second": (
            round(tokens / statistics.median(torch)) if torch else ""
        ),
        **range_columns("ratio", ratios),
        "peak_gflops_median": round(statistics.median(peaks) / 1e9, 1),
        **range_columns("peak_fraction", shares),
        "seed": 0,
        "variant": variant,
        "replicas": way.get("replicas", 1),
        "parts": way.get("parts", 1),
        **range_columns("ratio_to_plain", _ratios(steps["plain"], ours)),
        "target": "",
        "met": "",
    }


def make_preset_row(name, preset, steps, rounds):
    """Returns the row of a preset, from the seconds of all presets' steps.

    It has the same columns as the row of a Transformer.
    """
    sizes = PRESET_CONFIGURATIONS[name]
    baseline, ours = sizes["presets"][0], steps[preset]
    ratios = range_columns("ratio_to_plain", _ratios(steps[baseline], ours))
    tokens = sizes["batch_size"] * sizes["length"]
    is_dense = preset != baseline
    reached = ratios["ratio_to_plain_median"] >= LEAST_RATIO
    return {
        **provenance("tensorflow", "keras"),
        "torch": "",
        "dtype": "float32",
        "model": name,
        **{key: value for key, value in sizes.items() if key != "presets"},
        **dict.fromkeys(("intermediate_dim", "num_heads"), ""),
        "rounds": rounds,
        "keras_tokens_per_second": round(tokens / statistics.median(ours)),
        "torch_tokens_per_second": "",
        **range_columns("ratio", []),
        "peak_gflops_median": "",
        **range_columns("peak_fraction", []),
        "seed": 0,
        "variant": preset,
        "replicas": 1,
        "parts": 1,
        **ratios,
        "target": f"ratio to plain >= {LEAST_RATIO}" if is_dense else "",
        "met": reached if is_dense else "",
    }


def _ratios(slower, faster):
    return [s / f for s, f in zip(slower, faster, strict=True)]


def main():
    """Measures the configurations, or runs as a worker process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        choices=[*CONFIGURATIONS, *PRESET_CONFIGURATIONS, *GROUPS],
        help="measure one configuration; conv: all convolutional ones",
    )
    parser.add_argument(
        "--rounds", type=int, default=7, help="measurements of each model"
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=VARIANTS,
        default=list(VARIANTS),
        help="ways of running our step; the plain one is always measured",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "training_throughput.csv",
        help="CSV file to append rows to",
    )
    parser.add_argument(
        "--old",
        type=Path,
        metavar="PATH",
        help="another checkout, whose plain step alternates with ours",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        run_worker(options.only, options.worker)
        return
    wanted = {"plain", *options.variants}
    variants = [variant for variant in VARIANTS if variant in wanted]
    names = GROUPS.get(options.only, [options.only])
    if not options.only:
        names = [*CONFIGURATIONS, *GROUPS["conv"]]
    for name in names:
        if name in PRESET_CONFIGURATIONS:
            rows = measure_presets(name, options.rounds)
        elif options.old:
            rows = measure_checkouts(
                name, options.old.resolve(), options.rounds
            )
        else:
            rows = measure(name, variants, options.rounds)
        append_rows(options.output, rows)
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
