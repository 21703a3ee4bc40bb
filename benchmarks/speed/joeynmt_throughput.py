"""Target tokens per second of our training against JoeyNMT's.

    python benchmarks/speed/joeynmt_throughput.py --joeynmt JOEY/bin/python

Both train a Transformer of the same dimensions on the same prepared Multi30k
(the same subwords, and the same number of padded tokens on the longer side of
a batch) on all cores, in turns: ours, JoeyNMT, ours, JoeyNMT, ... Ours is
`fit` on the recipe's data in one process that waits meanwhile; its shapes are
compiled before the first round. JoeyNMT is started anew each round, reads the
subwords as ready words, and tells its own tokens per second; what it says of
its first updates is not counted, nor is the first update of each `fit`.
JoeyNMT does not sort sentences by length, so that fewer tokens of its batches
are real; the row has how many an update has.

JoeyNMT 2.3 wants packages of its own; `JOEY` is an environment made by

    python -m venv JOEY
    JOEY/bin/python -m pip install joeynmt==2.3.0 sentencepiece==0.2.0 \
        importlib_metadata

Multi30k is read from the folder that DEEPNMT_DATA names, or `../shared/data`.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, origin
from benchmarks.shared.worker_process import WorkerProcess, answer_questions
from benchmarks.speed.measuring.joeynmt_process import (
    joeynmt_configuration,
    joeynmt_round,
)

RECIPE = "transformer_tiny.multi30k_en_de"
SIZES = {
    "hidden_dim": 128,
    "intermediate_dim": 256,
    "num_heads": 4,
    "num_encoder_layers": 4,
    "num_decoder_layers": 4,
    "dropout": 0.3,
}
LEARNING_RATE = 1e-4
LABEL_SMOOTHING = 0.1
LANGUAGES = ("en", "de")


class Round(NamedTuple):
    """Target tokens a second and an update, of ours and of JoeyNMT."""

    ours: float
    theirs: float
    our_tokens: float
    their_tokens: float


def prepare(folder):
    """Prepares Multi30k, and writes it as subwords for JoeyNMT too."""
    from benchmarks.quality.measuring.small_corpora import folder_of_multi30k
    from keras_deepnmt.data.prepare import prepare_corpus
    from keras_deepnmt.data.prepared_data import PreparedData
    from keras_deepnmt.recipes.loading import load_recipe

    data_dir = folder_of_multi30k()
    recipe = load_recipe(RECIPE)
    prepare_corpus(
        recipe.data, folder / "prepared", data_dir=data_dir, progress=False
    )
    data = PreparedData(folder / "prepared")
    store, tokenizer = data.store("train"), data.source_tokenizer
    pairs = store.read(range(len(store)))
    with contextlib.ExitStack() as stack:
        for split, rows in {"train": pairs, "dev": pairs[:10]}.items():
            for side, language in enumerate(LANGUAGES):
                name = folder / f"{split}.{language}"
                file = stack.enter_context(name.open("w", encoding="utf-8"))
                for pair in rows:
                    file.write(" ".join(tokenizer.pieces(pair[side])) + "\n")
    size = data.manifest["source_vocabulary_size"]
    (folder / "vocabulary.txt").write_text(
        "".join(f"{piece}\n" for piece in tokenizer.pieces(range(4, size))),
        encoding="utf-8",
    )


def work(folder, batch_tokens, max_shapes, seed):
    """Trains ours, a number of updates at a time, when asked to."""
    import keras

    from keras_deepnmt.data.batch_source import make_batch
    from keras_deepnmt.data.batching import BatchPlan
    from keras_deepnmt.data.cells import choose_cells
    from keras_deepnmt.data.pipeline import training_dataset
    from keras_deepnmt.data.prepared_data import PreparedData
    from keras_deepnmt.losses import LabelSmoothedCrossEntropy
    from keras_deepnmt.zoo import create_model

    keras.utils.set_random_seed(seed)
    data = PreparedData(Path(folder) / "prepared")
    store, size = data.store("train"), data.manifest["source_vocabulary_size"]
    model = create_model(
        "transformer_tiny", size, size, **SIZES, share_embeddings=True
    )
    model.compile(
        keras.optimizers.Adam(LEARNING_RATE, 0.9, 0.98),
        LabelSmoothedCrossEntropy(LABEL_SMOOTHING),
    )
    cells = choose_cells(store.lengths, batch_tokens, max_shapes)
    plan = BatchPlan(store.lengths, cells, seed)
    model.fit([make_batch(cell, []) for cell in cells], verbose=0)
    done = 0

    def train(updates):
        nonlocal done
        clock = [None, 0.0]  # when the first update ended, and its tokens

        def on_train_batch_end(batch, logs):
            if batch == 0:
                clock[:] = time.perf_counter(), float(logs["tokens"])

        history = model.fit(
            training_dataset(store, plan, done, updates + 1),
            steps_per_epoch=updates + 1,
            callbacks=[
                keras.callbacks.LambdaCallback(
                    on_train_batch_end=on_train_batch_end
                )
            ],
            verbose=0,
        )
        seconds = time.perf_counter() - clock[0]
        done += updates + 1
        tokens = history.history["tokens"][0] - clock[1]
        return [tokens, seconds, model.count_params()]

    answer_questions({"train": train})


def measure(options):
    """Takes turns; gives the row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        # JSON is YAML.
        file = folder / "joeynmt.yaml"
        configuration = joeynmt_configuration(
            folder,
            SIZES,
            batch_tokens=options.batch_tokens,
            updates=options.updates,
            learning_rate=LEARNING_RATE,
            smoothing=LABEL_SMOOTHING,
            seed=options.seed,
        )
        file.write_text(json.dumps(configuration))
        rounds = []
        with WorkerProcess(
            *(__file__, "--worker", folder, "--seed", options.seed),
            *("--batch-tokens", options.batch_tokens),
            *("--max-shapes", options.max_shapes),
        ) as ours:
            ours("train", 2)
            for _ in range(options.rounds):
                tokens, seconds, parameters = ours("train", options.updates)
                speed, their_tokens, their_parameters = joeynmt_round(
                    options.joeynmt, file, options.updates
                )
                rounds.append(
                    Round(
                        tokens / seconds,
                        speed,
                        tokens / options.updates,
                        their_tokens,
                    )
                )
                print(rounds[-1], flush=True)
    return _row(options, rounds, parameters, their_parameters)


def _row(options, rounds, parameters, their_parameters):
    ratios = [found.ours / found.theirs for found in rounds]
    medians = Round(*map(statistics.median, zip(*rounds, strict=True)))
    versions = subprocess.run(
        [
            *(options.joeynmt, "-c"),
            "from importlib.metadata import version as v\n"
            "print(v('joeynmt'), v('torch'))",
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    return {
        **origin("tensorflow", "keras"),
        "joeynmt": versions[0],
        "torch": versions[1],
        "dtype": "float32",
        "threads": len(os.sched_getaffinity(0)),
        "seed": options.seed,
        "corpus": "multi30k_tok_en_de",
        **SIZES,
        "batch_tokens": options.batch_tokens,
        "max_shapes": options.max_shapes,
        "updates": options.updates,
        "rounds": options.rounds,
        "keras_parameters": parameters,
        "joeynmt_parameters": their_parameters,
        "keras_tokens_per_update": round(medians.our_tokens),
        "joeynmt_tokens_per_update": round(medians.their_tokens),
        "keras_tokens_per_second": round(medians.ours),
        "joeynmt_tokens_per_second": round(medians.theirs),
        "ratio_median": round(statistics.median(ratios), 2),
        "ratio_min": round(min(ratios), 2),
        "ratio_max": round(max(ratios), 2),
    }


def main():
    """Measures, or does the worker's job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joeynmt", help="Python with JoeyNMT 2.3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--batch-tokens", type=int, default=4_700)
    parser.add_argument("--max-shapes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "joeynmt_throughput.csv",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(
            options.worker,
            options.batch_tokens,
            options.max_shapes,
            options.seed,
        )
        return
    if options.joeynmt is None:
        parser.error("--joeynmt is needed: the Python of JoeyNMT.")
    row = measure(options)
    append_row(options.output, row)
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
