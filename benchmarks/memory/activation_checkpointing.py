"""Memory and time of updates with and without activation checkpointing.

    python benchmarks/memory/activation_checkpointing.py

A Transformer of width 512 with 6 or 12 layers on each side makes updates with
Adam, compiled by XLA, on batches of 32 sentences of 32 tokens. There are two
processes for each depth, one with `activation_checkpointing`, which make their
updates in turns. The first update of each is compiled and not counted.

A row has the peak of the process's resident memory in the counted updates, the
resident memory between two updates, which holds weights, the state of Adam and
the programs, and the median time of an update. Rows are appended to
`results/activation_checkpointing.csv`.
"""

import argparse
import ctypes
import json
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.memory.repeated_calls import resident_mib
from benchmarks.shared.result_rows import append_rows, provenance
from benchmarks.shared.worker_process import WorkerProcess, answer_questions

SIDES = {"kept": False, "recomputed": True}
SIZES = {"hidden_dim": 512, "intermediate_dim": 2048, "num_heads": 8}
VOCABULARY_SIZE = 8_000
SENTENCES = LENGTH = 32


class Updates:
    """Trains one model; runs in a process of its own."""

    def start(self, layers, is_recomputed):
        """Makes the model and its first update; returns its parameters."""
        import keras
        import numpy as np

        from keras_deepnmt.models import Transformer

        keras.utils.set_random_seed(0)
        self._model = Transformer(
            VOCABULARY_SIZE,
            VOCABULARY_SIZE,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            share_embeddings=True,
            **SIZES,
        )
        self._model.compile(
            keras.optimizers.Adam(1e-4), activation_checkpointing=is_recomputed
        )
        random = np.random.default_rng(0)
        shape = (SENTENCES, LENGTH)
        source, target, labels = random.integers(
            4, VOCABULARY_SIZE, (3, *shape), dtype="int32"
        )
        self._batch = {"source_ids": source, "target_ids": target}, labels
        self._model.train_on_batch(*self._batch)
        return self._model.count_params()

    def update(self):
        """Makes an update; returns memory before and most memory, and time."""
        # The C library keeps what the last update and compiling have freed.
        ctypes.CDLL(None).malloc_trim(0)
        before, most, is_done = resident_mib(), [0.0], threading.Event()

        def watch():
            while not is_done.wait(0.002):
                most.append(resident_mib())

        watcher = threading.Thread(target=watch)
        watcher.start()
        start = time.perf_counter()
        self._model.train_on_batch(*self._batch)
        seconds = time.perf_counter() - start
        is_done.set()
        watcher.join()
        return before, max(most), seconds


def measure(layers, updates):
    """Makes the updates of both sides in turns; returns their rows."""
    found = {side: [] for side in SIDES}
    with (
        WorkerProcess(__file__, "--answer") as kept,
        WorkerProcess(__file__, "--answer") as recomputed,
    ):
        workers = dict(zip(SIDES, (kept, recomputed), strict=True))
        parameters = [
            worker("start", layers, SIDES[side])
            for side, worker in workers.items()
        ]
        for _ in range(updates):
            for side, worker in workers.items():
                found[side].append(worker("update"))
    rows = []
    for side, measured in found.items():
        between, most, seconds = zip(*measured, strict=True)
        rows.append(
            {
                **provenance("tensorflow", "keras"),
                "layers": layers,
                **SIZES,
                "vocabulary_size": VOCABULARY_SIZE,
                "sentences": SENTENCES,
                "length": LENGTH,
                "parameters": parameters[0],
                "activations": side,
                "updates": updates,
                "mib_between": round(max(between), 1),
                "mib_most": round(max(most), 1),
                "seconds": round(statistics.median(seconds), 3),
            }
        )
        print(json.dumps(rows[-1], indent=2), flush=True)
    return rows


def main():
    """Measures all depths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[6, 12])
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent
        / "results"
        / "activation_checkpointing.csv",
    )
    options = parser.parse_args()
    for layers in options.layers:
        append_rows(options.output, measure(layers, options.updates))


if __name__ == "__main__":
    if "--answer" in sys.argv:
        updates = Updates()
        answer_questions({"start": updates.start, "update": updates.update})
    else:
        main()
