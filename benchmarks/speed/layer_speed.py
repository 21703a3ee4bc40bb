"""Time and memory of each paper's layer against what it replaces.

    python benchmarks/speed/layer_speed.py
    python benchmarks/speed/layer_speed.py --only "HybridSelfAttention*"

Both sides of a case are compiled by XLA and take turns: once forward (without
dropout), and once for training. That is forward and backward for a layer
alone and for an encoder (gradients of all weights and, alone, of the inputs;
without dropout), and the whole training step for a model. Ratios are of the
times of one round; medians and quartiles over the rounds go to
`results/layer_speed.csv`.

Beside the times stand what XLA says of the programs: the multiply-adds of
their products and convolutions, counted before XLA rewrites any (empty where
there are none, or a loop, whose repetitions are not written down), and the
memory of the training program: arguments, results and scratch, from XLA's own
report.
"""

import argparse
import fnmatch
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.compiled_programs import CompiledPrograms
from benchmarks.shared.result_rows import append_row, origin
from benchmarks.speed.measuring.layer_case import SIZES
from benchmarks.speed.measuring.layer_cases import CASES
from benchmarks.speed.measuring.layer_functions import FUNCTIONS, WAYS

SIDES = ("paper", "plain")
SHORTEST = 0.1  # seconds that are timed at once


class Compiler:
    """Makes and compiles the functions of the cases.

    Args:
        programs: `CompiledPrograms`.
    """

    def __init__(self, programs):
        self._programs = programs
        self._plain = {}

    def __call__(self, case, sizes):
        """Compiles both sides of a case; a plain model serves many cases.

        Returns:
            Two dicts by way and side: functions, and what XLA compiled.
        """
        key = case.kind, case.make_plain
        if key not in self._plain:
            self._plain[key] = self._compile(case.kind, case.make_plain, sizes)
        sides = {
            "paper": self._compile(case.kind, case.make, sizes),
            "plain": self._plain[key],
        }
        return tuple(
            {(w, s): both[number][w] for s, both in sides.items() for w in WAYS}
            for number in (0, 1)
        )

    def _compile(self, kind, make, sizes):
        import keras

        keras.utils.set_random_seed(0)
        functions, compiled = FUNCTIONS[kind](make(sizes), sizes), {}
        for way in WAYS:
            self._programs.take()  # what making them compiled
            functions[way]()
            compiled[way] = self._programs.take()
            assert compiled[way]["programs"]
        return functions, compiled


def measure(functions, rounds):
    """Times the functions of one case.

    Args:
        functions: dict by way and side.
        rounds: how often both sides take turns.

    Returns:
        Dict by way and side: lists of seconds.
    """
    found = {key: [] for key in functions}
    for way in WAYS:
        once = max(_seconds(functions[way, side], 1) for side in SIDES)
        calls = max(1, math.ceil(SHORTEST / once))
        for number in range(rounds):
            # Whoever comes second finds warmer caches.
            for side in SIDES if number % 2 else SIDES[::-1]:
                seconds = _seconds(functions[way, side], calls)
                found[way, side].append(seconds)
    return found


def _seconds(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def make_row(case, sizes, rounds, found, compiled):
    """Turns what was measured into a row."""
    row = {
        **origin("tensorflow", "keras"),
        "layer": case.layer,
        "variant": case.variant,
        "plain": case.plain,
        "kind": case.kind,
        "dtype": "float32",
        "seed": 0,
        "rounds": rounds,
        **{name: sizes.get(name, "") for name in SIZES["base"]["model"]},
    }
    reached = []
    for way in WAYS:
        times = [found[way, side] for side in SIDES]
        ratios = [a / b for a, b in zip(*times, strict=True)]
        row |= {
            f"{way}_ms_{side}": round(1e3 * statistics.median(seconds), 3)
            for side, seconds in zip(SIDES, times, strict=True)
        }
        row |= _quartiles(f"{way}_ratio", ratios)
        adds = [compiled[way, side]["multiply_adds"] for side in SIDES]
        ratio = adds[0] / adds[1] if all(adds) else None
        row[f"{way}_multiply_adds_ratio"] = "" if ratio is None else ratio
        over = (ratio or math.nan) if case.of_multiply_adds else 1.0
        reached.append(statistics.median(ratios) / over)
    sizes_mib = [compiled["training", side]["bytes"] / 2**20 for side in SIDES]
    row["training_mib_paper"], row["training_mib_plain"] = sizes_mib
    row["memory_ratio"] = sizes_mib[0] / sizes_mib[1]
    row["target"] = row["met"] = ""
    if case.target is not None:
        what = "time / multiply-adds" if case.of_multiply_adds else "time"
        row["target"] = f"{what} <= {case.target}"
        # A model's target is about its training step.
        whole = case.kind == "preset" or case.kind.endswith("model")
        reached = reached[-1:] if whole else reached
        row["met"] = all(value <= case.target for value in reached)
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in row.items()
    }


def _quartiles(name, values):
    cuts = statistics.quantiles(values * 2, n=4, method="inclusive")
    if len(values) > 1:
        cuts = statistics.quantiles(values, n=4, method="inclusive")
    suffixes = ("quarter", "median", "three_quarters")
    return {f"{name}_{s}": cut for s, cut in zip(suffixes, cuts, strict=True)}


def main():
    """Measures the cases and appends a row after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        default="*",
        metavar="PATTERN",
        help="cases by name, as listed by --list; * is a wildcard",
    )
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--size", choices=SIZES, default="base", help="tiny: a first try"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "layer_speed.csv",
    )
    options = parser.parse_args()
    chosen = [c for c in CASES if fnmatch.fnmatchcase(c.name, options.only)]
    if options.list:
        print(*[case.name for case in chosen], sep="\n")
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(CompiledPrograms(folder))
        for case in chosen:
            sizes = SIZES[options.size][case.kind]
            functions, compiled = compiler(case, sizes)
            found = measure(functions, options.rounds)
            row = make_row(case, sizes, options.rounds, found, compiled)
            append_row(options.output, row)
            print(json.dumps(row, indent=2), flush=True)


if __name__ == "__main__":
    main()
