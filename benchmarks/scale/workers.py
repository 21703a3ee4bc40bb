"""The speed of `deepnmt translate-files` with one worker and with two.

    python benchmarks/scale/workers.py
    python benchmarks/scale/workers.py --run transformer_tiny.demo_de_en

Both numbers of workers wait in one Ray session and take turns: in each round
the one translates the sentences of the bundled corpus, then the other does. A
worker uses one core (`--cores-per-worker 1`). Loading the model and compiling
are excluded: each worker has translated all lines before.

A row has the lines, the seconds, and the seconds of the processor that the
workers took for them. On a machine that has other work, the ratio of the lines
per second of a round says what a second worker gains, and the processor's
seconds per line what it costs. Rows are appended to `results/workers.csv`.
"""

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance
from keras_deepnmt.bulk.ray_session import ray_session
from keras_deepnmt.bulk.worker_pool import WorkerPool
from keras_deepnmt.cli import make_parser
from keras_deepnmt.commands.shards.worker import BlockTranslator, open_model
from keras_deepnmt.data.demo import demo_pairs

RESULTS = Path(__file__).parent / "results" / "workers.csv"
NUMBERS = (1, 2)


class TimedTranslator:
    """Returns how many lines a block has, and the processor's seconds."""

    def __init__(self, *arguments):
        self._translate = BlockTranslator(*arguments)

    def __call__(self, lines):
        """Translates the lines of a block."""
        start = time.process_time()
        found = self._translate(lines)
        return len(found.lines), time.process_time() - start


def run_round(pool, blocks):
    """Returns the lines, seconds and processor's seconds of all blocks."""
    start = time.perf_counter()
    found = list(pool.results((block,) for block in blocks))
    seconds = time.perf_counter() - start
    lines, busy = map(sum, zip(*found, strict=True))
    return {"lines": lines, "seconds": seconds, "worker_seconds": busy}


def main():
    """Measures, and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default="transformer_small.tatoeba_de_en")
    parser.add_argument("--lines", type=int, default=1024)
    parser.add_argument("--block-lines", type=int, default=128)
    parser.add_argument("--num-beams", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    words = [given.run, "--input", "-", "--output", "-"]
    words += ["--num-beams", str(given.num_beams)]
    options = make_parser("translate-files").parse_args(words)
    model = open_model(options).sha256
    lines = [pair.source.encode() for pair in demo_pairs(given.lines)]
    size = given.block_lines
    blocks = [lines[n : n + size] for n in range(0, len(lines), size)]
    made_of = (vars(options), {"TF_CPP_MIN_LOG_LEVEL": "3"}, model)
    rows = []
    with ray_session(None, sum(NUMBERS)) as ray:
        pools = {
            number: WorkerPool(ray, TimedTranslator, made_of, workers=number)
            for number in NUMBERS
        }
        with contextlib.ExitStack() as stack:
            for pool in pools.values():
                stack.enter_context(pool)
            for number, pool in pools.items():
                for _ in range(2 * number):
                    run_round(pool, blocks)
                print(f"{number} ready", flush=True)
            for number_of_round in range(1, given.rounds + 1):
                for number, pool in pools.items():
                    found = run_round(pool, blocks)
                    print(number, found, flush=True)
                    rows.append(
                        {
                            **provenance("tensorflow", "keras", "ray"),
                            "model": given.run,
                            "num_beams": given.num_beams,
                            "block_lines": size,
                            "round": number_of_round,
                            "workers": number,
                            # Above the number of cores: others wait, too.
                            "load": round(os.getloadavg()[0], 1),
                            **{
                                name: round(value, 2)
                                for name, value in found.items()
                            },
                        }
                    )
    append_rows(given.output, rows)


if __name__ == "__main__":
    main()
