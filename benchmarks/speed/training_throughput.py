"""Target tokens per second of our training step against PyTorch's.

    python benchmarks/speed/training_throughput.py
    python benchmarks/speed/training_throughput.py --only conv

Worker processes take turns on the same random batch: one with
`torch.nn.Transformer`, and one with our `Transformer` of the same dimensions
(embeddings, positions, tied output matrix, dropout, label smoothing and Adam
included) under XLA for each way of running the step: plain; under a
`MirroredStrategy` of one and of two logical devices; in two parts whose
gradients are accumulated; in mixed_bfloat16. The global batch is the same. A
round of our step and a matrix product under XLA of the same numbers, also in
turns, gives the fraction of the peak that the step's matrix products reach.
The convolutional configurations have no counterpart in PyTorch: the residual
baseline and the dense models of its size take turns, with the optimizer of
Shen et al. (2018), and the ratio to the plain one is that to the baseline.
Warm-up steps are not counted. Medians and ranges go to
`results/training_throughput.csv`, one row a configuration and way.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, origin
from benchmarks.shared.worker_process import WorkerProcess, answer_questions
from benchmarks.speed.measuring.training_steps import (
    CONFIGURATIONS,
    GROUPS,
    PEAK_SIZE,
    PRESET_CONFIGURATIONS,
    VARIANTS,
    keras_steps,
    preset_steps,
    step_flops,
    torch_steps,
)

WARM_UP = 2  # the first one compiles
TORCH = "torch"
LEAST_RATIO = 0.85  # of a dense model's tokens/s to the baseline's


def work(name, variant):
    """Answers `["time", function]` with the seconds of a call."""
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
    """Measures one configuration; gives its rows, one a variant."""
    steps, products = _take_turns(name, [*variants, TORCH], variants, rounds)
    return [
        _row(name, variant, steps, products[variant], rounds)
        for variant in variants
    ]


def measure_presets(name, rounds):
    """Measures presets in turns; gives their rows, the baseline's first."""
    presets = PRESET_CONFIGURATIONS[name]["presets"]
    steps, _ = _take_turns(name, presets, [], rounds)
    return [make_preset_row(name, preset, steps, rounds) for preset in presets]


def _take_turns(name, sides, with_products, rounds):
    """Times steps and products; gives dicts of lists of seconds by side."""
    steps, products = {}, {}
    with contextlib.ExitStack() as stack:
        workers = {
            side: stack.enter_context(
                WorkerProcess(__file__, "--only", name, "--worker", side)
            )
            for side in sides
        }
        for _ in range(WARM_UP + rounds):
            for side, worker in workers.items():
                if side in with_products:
                    best = min(worker("time", "product") for _ in range(5))
                    products.setdefault(side, []).append(best)
                seconds = worker("time", "step")
                steps.setdefault(side, []).append(seconds)
    return (
        {side: found[WARM_UP:] for side, found in times.items()}
        for times in (steps, products)
    )


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
        "target": "",
        "met": "",
    }


def make_preset_row(name, preset, steps, rounds):
    """Turns the seconds of a preset and of the baseline into a row.

    Args:
        name: one of `PRESET_CONFIGURATIONS`.
        preset: str.
        steps: dict of lists of seconds by preset.
        rounds: int.

    Returns:
        Dict of the columns that a row of a Transformer has too.
    """
    c = PRESET_CONFIGURATIONS[name]
    baseline, ours = c["presets"][0], steps[preset]
    ratios = _range("ratio_to_plain", _ratios(steps[baseline], ours))
    tokens = c["batch_size"] * c["length"]
    is_dense = preset != baseline
    reached = ratios["ratio_to_plain_median"] >= LEAST_RATIO
    return {
        **origin("tensorflow", "keras"),
        "torch": "",
        "dtype": "float32",
        "model": name,
        **{key: value for key, value in c.items() if key != "presets"},
        **dict.fromkeys(("intermediate_dim", "num_heads"), ""),
        "rounds": rounds,
        "keras_tokens_per_second": round(tokens / statistics.median(ours)),
        "torch_tokens_per_second": "",
        **_range("ratio", []),
        "peak_gflops_median": "",
        **_range("peak_fraction", []),
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


def _range(name, values):
    """Gives three columns, empty ones of no values."""
    functions = {"median": statistics.median, "min": min, "max": max}
    return {
        f"{name}_{suffix}": round(function(values), 3) if values else ""
        for suffix, function in functions.items()
    }


def main():
    """Measures every configuration, or does a worker's job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        choices=[*CONFIGURATIONS, *PRESET_CONFIGURATIONS, *GROUPS],
        help="conv: all convolutional ones",
    )
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
    names = GROUPS.get(options.only, [options.only])
    if not options.only:
        names = [*CONFIGURATIONS, *GROUPS["conv"]]
    for name in names:
        if name in PRESET_CONFIGURATIONS:
            rows = measure_presets(name, options.rounds)
        else:
            rows = measure(name, variants, options.rounds)
        append_rows(options.output, rows)
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
