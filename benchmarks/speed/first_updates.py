"""How long the first updates of a run take, compiled ahead and one by one.

    python benchmarks/speed/first_updates.py
    python benchmarks/speed/first_updates.py --rounds 1 --shapes 3
    KERAS_BACKEND=jax python benchmarks/speed/first_updates.py

`transformer_tiny` with a vocabulary of 5,000 is trained on batches of about
3,500 tokens on each side: first on one of each shape, then on shapes drawn at
random. Each training is a new process without a cache of compilations; the two
kinds alternate. The seconds are those of `fit`, from tracing to the last
update. The median ratio of a few rounds is appended to
`results/first_updates.csv`, with the peak memory of both kinds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

REPOSITORY = Path(__file__).parents[2]
PRESET = "transformer_tiny"
VOCABULARY_SIZE = 5000
LENGTHS = (8, 10, 12, 14, 16, 18, 20, 22, 25, 28, 33, 40)
BATCH_TOKENS = 3500


def train(is_ahead, num_shapes, num_updates):
    """Trains in this process; prints the result as JSON."""
    import resource
    import time

    import keras
    import numpy as np

    import keras_deepnmt

    keras.utils.set_random_seed(1)
    sizes = VOCABULARY_SIZE, VOCABULARY_SIZE
    model = keras_deepnmt.create_model(PRESET, *sizes)
    model.compile("adam")
    lengths = LENGTHS[:: len(LENGTHS) // num_shapes][:num_shapes]
    shapes = [(BATCH_TOKENS // length, length, length) for length in lengths]
    draw = np.random.default_rng(1)
    more = draw.integers(len(shapes), size=num_updates - len(shapes))
    batches = []
    for rows, length, _ in shapes + [shapes[index] for index in more]:
        ids = draw.integers(4, VOCABULARY_SIZE, (rows, length)).astype("int32")
        batches.append(({"source_ids": ids, "target_ids": ids}, ids))
    at_once = model.compile_ahead(shapes) if is_ahead else 0
    if is_ahead and not at_once:
        raise SystemExit("This machine has too few cores or too little memory.")
    start = time.monotonic()
    history = model.fit(batches, shuffle=False, verbose=0)
    result = {
        "backend": keras.config.backend(),
        "seconds": time.monotonic() - start,
        "at_once": at_once,
        "loss": float(history.history["loss"][0]).hex(),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
    print(json.dumps(result))


def train_in_process(kind, options):
    """Trains in a new process; returns its result."""
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    # What an earlier process compiled must not be used.
    variables.pop("TF_XLA_FLAGS", None)
    done = subprocess.run(
        [
            *(sys.executable, __file__, "--train", kind),
            *("--shapes", str(options.shapes)),
            *("--updates", str(options.updates)),
        ],
        env=variables,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Measures and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", type=int, default=12)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--train", choices=("ahead", "one_by_one"))
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "first_updates.csv",
    )
    options = parser.parse_args()
    if options.train:
        train(options.train == "ahead", options.shapes, options.updates)
        return
    kinds = ("one_by_one", "ahead")
    rounds = []
    for number in range(options.rounds):
        # The order changes from round to round.
        order = kinds[:: 1 - 2 * (number % 2)]
        rounds.append({kind: train_in_process(kind, options) for kind in order})
        assert len({rounds[-1][kind]["loss"] for kind in kinds}) == 1
    alone, ahead = (
        [results[kind]["seconds"] for results in rounds] for kind in kinds
    )
    ratios = [b / a for a, b in zip(alone, ahead, strict=True)]
    backend = rounds[0]["ahead"]["backend"]
    row = {
        **provenance("keras"),
        "backend": backend,
        "backend_version": version(backend),
        "preset": PRESET,
        "shapes": options.shapes,
        "updates": options.updates,
        "at_once": rounds[0]["ahead"]["at_once"],
        "rounds": options.rounds,
        "one_by_one_seconds_median": round(statistics.median(alone), 1),
        "ahead_seconds_median": round(statistics.median(ahead), 1),
        "ratio_median": round(statistics.median(ratios), 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
        "one_by_one_peak_mib": max(r["one_by_one"]["peak_mib"] for r in rounds),
        "ahead_peak_mib": max(r["ahead"]["peak_mib"] for r in rounds),
    }
    append_row(options.output, row)
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
