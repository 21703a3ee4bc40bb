"""How much faster training is when freed memory stays with the process.

    python benchmarks/speed/freed_memory.py

Two processes alternate on the training step of a model on the CPU: in one of
them memory that was freed is returned to the system, in the other one it is
kept (`keras_deepnmt.training.keep_freed_memory`, as in `deepnmt train`). A row
has the updates per second of the latter relative to the former, and for both
the processor time of an update, the part of it in the system, the pages of
memory that it takes, and the peak memory. Medians over the rounds are appended
to `results/freed_memory.csv`.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance
from benchmarks.shared.worker_process import WorkerProcess, answer_questions
from benchmarks.speed.measuring.training_steps import (
    CONFIGURATIONS,
    keras_steps,
)
from keras_deepnmt.training import keep_freed_memory

WAYS = ("returned", "kept")
WARM_UP = 3  # the first one compiles


def run_worker(name, way):
    """Answers requests `["measure", updates]` with what an update costs."""
    import resource

    if way == "kept" and not keep_freed_memory():
        raise SystemExit("The C library of this system cannot be asked.")
    step = keras_steps(CONFIGURATIONS[name])["step"]
    for _ in range(WARM_UP):
        step()

    def measure(updates):
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.time()
        for _ in range(updates):
            step()
        after = resource.getrusage(resource.RUSAGE_SELF)
        system = after.ru_stime - before.ru_stime
        return {
            "seconds": (time.time() - start) / updates,
            "processor_seconds": (after.ru_utime - before.ru_utime + system)
            / updates,
            "system_seconds": system / updates,
            "pages": (after.ru_minflt - before.ru_minflt) / updates,
            "peak_mib": after.ru_maxrss / 1024,
        }

    answer_questions({"measure": measure})


def summary(measured):
    """Returns the columns of a row.

    `measured` maps each way to what was measured in all rounds.
    """
    ratios = [
        returned["seconds"] / kept["seconds"]
        for returned, kept in zip(*(measured[way] for way in WAYS), strict=True)
    ]
    columns = {
        "rounds": len(ratios),
        "speed_median": round(statistics.median(ratios), 3),
        "speed_min": round(min(ratios), 3),
        "speed_max": round(max(ratios), 3),
    }
    for way in WAYS:
        for name in measured[way][0]:
            median = statistics.median(found[name] for found in measured[way])
            columns[f"{way}_{name}"] = round(median, 4)
    return columns


def measure_configuration(name, rounds, updates):
    """Returns the columns of a configuration."""
    script = Path(__file__)
    measured = {way: [] for way in WAYS}
    with (
        WorkerProcess(script, "--worker", name, WAYS[0]) as first,
        WorkerProcess(script, "--worker", name, WAYS[1]) as second,
    ):
        for worker in (first, second):
            worker(
                "measure", 1
            )  # One after another, so that none is disturbed.
        for _ in range(rounds):
            for way, worker in zip(WAYS, (first, second), strict=True):
                measured[way].append(worker("measure", updates))
    return summary(measured)


def main():
    """Measures and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", choices=CONFIGURATIONS, nargs="+", default=[*CONFIGURATIONS]
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "freed_memory.csv",
    )
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        run_worker(*options.worker)
        return
    for name in options.only:
        row = {
            **provenance("tensorflow", "keras"),
            "configuration": name,
            **measure_configuration(name, options.rounds, options.updates),
        }
        append_row(options.output, row)
        print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
