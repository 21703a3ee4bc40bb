"""Training in bfloat16 on a processor, compared with float32 and PyTorch.

    python benchmarks/speed/training_bfloat16.py
    python benchmarks/speed/training_bfloat16.py --only 4+4x128

Processes run one after another on the same random batch, one for each way of
making an update of a Transformer of the same dimensions, and those of the
targets a second time in the opposite order:

- `float32`: one program of XLA, our step before there was another one;
- `bfloat16`: our step with `dtype="mixed_bfloat16"` (`xla/autoclustering.py`);
- `bfloat16, one program`: the same model, all of it compiled by XLA;
- `bfloat16, all autoclustered`: TensorFlow's autoclustering of everything,
  the update included, by flags in the environment alone, with which this was
  tried first;
- `torch float32` and `torch bfloat16`: `torch.nn.Transformer`, the second one
  under autocast.

All processes keep freed memory as `deepnmt train` does. Warm-up steps are
excluded from the times; `first_seconds` is the first one, with its compilation.
Memory is the largest resident size of the process. Rows are appended to
`results/training_bfloat16.csv`. The script refuses a processor without
instructions for bfloat16.
"""

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance
from benchmarks.shared.worker_process import WorkerProcess, answer_questions
from benchmarks.speed.measuring.training_steps import (
    CONFIGURATIONS,
    keras_steps,
    torch_steps,
)
from keras_deepnmt.training import keep_freed_memory
from keras_deepnmt.xla.processor import (
    bfloat16_instructions,
    multiplies_bfloat16,
)

WARM_UP = 3  # the first one compiles
FLOAT32, BFLOAT16, TORCH = "float32", "bfloat16", "torch bfloat16"
FIRST_TRY = (
    "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit "
    "--tf_xla_ops_to_cluster=FUSIBLE --tf_xla_min_cluster_size=2"
)
# What each way passes to `keras_steps` or `torch_steps`, and its environment.
WAYS = {
    FLOAT32: ({}, {}),
    BFLOAT16: ({"dtype": "mixed_bfloat16"}, {}),
    # With flags of the user the package adds none and stays with XLA.
    "bfloat16, one program": (
        {"dtype": "mixed_bfloat16"},
        {"TF_XLA_FLAGS": "--tf_xla_auto_jit=0"},
    ),
    "bfloat16, all autoclustered": (
        {"dtype": "mixed_bfloat16", "jit_compile": False},
        {"TF_XLA_FLAGS": FIRST_TRY},
    ),
    "torch float32": ({"dtype": "float32"}, {}),
    TORCH: ({"dtype": "bfloat16"}, {}),
}
# Rows and lengths of the batches.
BATCHES = {"6+6x512": (64, 32), "3+3x256": (128, 32), "4+4x128": (128, 24)}


def sizes_of(name):
    """Returns the dimensions of a configuration with its batch."""
    rows, length = BATCHES[name]
    return CONFIGURATIONS[name] | {"batch_size": rows, "length": length}


def run_worker(name, way):
    """Answers `["time"]` with seconds of an update, `["memory"]` with MiB."""
    keep_freed_memory()
    make = torch_steps if way.startswith("torch") else keras_steps
    functions = make(sizes_of(name), **WAYS[way][0])

    def seconds():
        start = time.perf_counter()
        functions["step"]()
        return time.perf_counter() - start

    def memory():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_maxrss / 1024

    answer_questions({"time": seconds, "memory": memory})


def measure(name, rounds):
    """Measures one configuration; returns a row for each way.

    One process at a time is there, since one that waits holds memory: all ways
    once, then those of the targets again in the opposite order.
    """
    times = {way: [] for way in WAYS}
    first, memory = {}, {}
    for ways in (list(WAYS), [TORCH, BFLOAT16, FLOAT32]):
        for way in ways:
            environment = WAYS[way][1]
            arguments = (Path(__file__), "--only", name, "--worker", way)
            with WorkerProcess(*arguments, **environment) as worker:
                warm_up = [worker("time") for _ in range(WARM_UP)]
                first[way] = warm_up[0]
                times[way] += [worker("time") for _ in range(rounds)]
                memory[way] = worker("memory")
    sizes = sizes_of(name)
    tokens = sizes["batch_size"] * sizes["length"]
    return [
        {
            **provenance("tensorflow", "keras", "torch"),
            "instructions": " ".join(bfloat16_instructions()),
            "model": name,
            **sizes,
            "rounds": len(seconds),
            "way": way,
            "milliseconds_median": _milliseconds(statistics.median(seconds)),
            "milliseconds_min": _milliseconds(min(seconds)),
            "milliseconds_max": _milliseconds(max(seconds)),
            "tokens_per_second": round(tokens / statistics.median(seconds)),
            "speed_to_float32": _ratio(times[FLOAT32], seconds),
            "speed_to_float32_best": _best_ratio(times[FLOAT32], seconds),
            "speed_to_torch_bfloat16": _ratio(times[TORCH], seconds),
            "speed_to_torch_bfloat16_best": _best_ratio(times[TORCH], seconds),
            "first_seconds": round(first[way], 1),
            "memory_mib": round(memory[way]),
            "seed": 0,
        }
        for way, seconds in times.items()
    ]


def _milliseconds(seconds):
    return round(1e3 * seconds, 1)


def _ratio(slower, faster):
    return round(statistics.median(slower) / statistics.median(faster), 3)


def _best_ratio(slower, faster):
    return round(min(slower) / min(faster), 3)


def main():
    """Measures the configurations, or runs as a worker process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=BATCHES, help="one configuration")
    parser.add_argument(
        "--rounds", type=int, default=6, help="updates of each process"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "training_bfloat16.csv",
        help="CSV file to append rows to",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        run_worker(options.only, options.worker)
        return
    if not multiplies_bfloat16():
        sys.exit("This processor has no instructions for bfloat16.")
    for name in [options.only] if options.only else BATCHES:
        rows = measure(name, options.rounds)
        append_rows(options.output, rows)
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
