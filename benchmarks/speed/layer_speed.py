"""Time and memory of each paper's layer, compared with what it replaces.

    python benchmarks/speed/layer_speed.py
    python benchmarks/speed/layer_speed.py --only "HybridSelfAttention*"

Both sides of a case (the paper's layer, and what it replaces) are compiled by
XLA and timed alternately, for the forward pass without dropout and for
training. Training means the forward and backward pass for a single layer or an
encoder (without dropout; gradients of all weights, for a single layer of its
inputs too), and the whole training step for a model. Ratios compare the two
times of one round; medians and quartiles over the rounds are appended to
`results/layer_speed.csv`.

A row also has what XLA reports about the compiled programs: the multiply-adds
of matrix products and convolutions, counted before XLA's optimizations (empty
if there are none, or if there is a loop, whose number of iterations is
unknown), and the memory of the training program: arguments, results and scratch
space.
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
from benchmarks.shared.result_rows import append_row, provenance
from benchmarks.speed.measuring.layer_case import SIZES
from benchmarks.speed.measuring.layer_cases import CASES
from benchmarks.speed.measuring.layer_functions import FUNCTIONS, WAYS

SIDES = ("paper", "plain")
MIN_SECONDS = 0.1  # calls are repeated until a measurement takes this long


class Compiler:
    """Creates and compiles the functions of the cases."""

    def __init__(self, programs):
        self._programs = programs
        self._plain = {}

    def __call__(self, case, sizes):
        """Compiles both sides of a case; plain models are compiled only once.

        Returns two dicts by way and side: functions, and facts about the
        programs.
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
            self._programs.describe_new()  # discards programs of the set-up
            functions[way]()
            compiled[way] = self._programs.describe_new()
            assert compiled[way]["programs"]
        return functions, compiled


def measure(functions, rounds):
    """Times the functions of one case.

    `functions` is a dict by way and side, `rounds` the number of alternations.
    Returns lists of seconds, by way and side.
    """
    seconds_of = {key: [] for key in functions}
    for way in WAYS:
        once = max(_seconds(functions[way, side], 1) for side in SIDES)
        calls = max(1, math.ceil(MIN_SECONDS / once))
        for number in range(rounds):
            # The second one profits from warm caches: the order alternates.
            for side in SIDES if number % 2 else SIDES[::-1]:
                seconds = _seconds(functions[way, side], calls)
                seconds_of[way, side].append(seconds)
    return seconds_of


def _seconds(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def make_row(case, sizes, rounds, seconds_of, compiled):
    """Returns the row of a case."""
    row = {
        **provenance("tensorflow", "keras"),
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
        times = [seconds_of[way, side] for side in SIDES]
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
        quantity = "time / multiply-adds" if case.of_multiply_adds else "time"
        row["target"] = f"{quantity} <= {case.target}"
        # The target of a model is only about its training step.
        is_model = case.kind == "preset" or case.kind.endswith("model")
        reached = reached[-1:] if is_model else reached
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
    """Measures the cases, and appends a row after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        default="*",
        metavar="PATTERN",
        help="names of cases (see --list); * is a wildcard",
    )
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--size",
        choices=SIZES,
        default="base",
        help="tiny is for trying out the script",
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
            seconds_of = measure(functions, options.rounds)
            row = make_row(case, sizes, options.rounds, seconds_of, compiled)
            append_row(options.output, row)
            print(json.dumps(row, indent=2), flush=True)


if __name__ == "__main__":
    main()
