r"""Training speed: target tokens per second, compared with JoeyNMT.

    python benchmarks/speed/joeynmt_throughput.py --joeynmt JOEY/bin/python

Both train a Transformer of the same dimensions on all cores, on the same
prepared Multi30k: the same subwords, and the same number of real target tokens
in an update. They alternate: ours, JoeyNMT, ours, JoeyNMT, ... Ours is `fit` on
the recipe's data, in one process that waits in between; it compiles its batch
shapes before the first round. JoeyNMT is started again for each round, reads
the subwords as words, and logs its own tokens per second. The first log line of
JoeyNMT and the first update of each `fit` are excluded.

`--batch-tokens` counts our padded tokens. JoeyNMT does not sort sentences by
length, so that its batches contain more padding. Its own padded batch size is
therefore found before the first round: JoeyNMT is started with several sizes
until its real tokens in an update differ from ours by at most 2 %.

JoeyNMT 2.3 needs other packages than ours. `JOEY` is a virtual environment:

    python -m venv JOEY
    JOEY/bin/python -m pip install joeynmt==2.3.0 sentencepiece==0.2.0 \
        importlib_metadata

Multi30k is read from the folder that the environment variable DEEPNMT_DATA
names, or from `../shared/data`.
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

from benchmarks.shared.result_rows import append_row, provenance
from benchmarks.shared.worker_process import WorkerProcess, answer_questions
from benchmarks.speed.measuring.joeynmt_process import (
    joeynmt_configuration,
    train_joeynmt,
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
# Largest difference of the real tokens in an update, and tries to reach it.
TOLERANCE = 0.02
TRIES = 5


class Round(NamedTuple):
    """Target tokens per second and per update, ours and JoeyNMT's."""

    ours: float
    theirs: float
    our_tokens: float
    their_tokens: float


def prepare(folder):
    """Prepares Multi30k, and writes it as subwords for JoeyNMT."""
    from benchmarks.shared.multi30k import find_multi30k
    from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
    from keras_deepnmt.data.prepared_data import PreparedData
    from keras_deepnmt.recipes.loading import load_recipe

    data_dir = find_multi30k()
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


def run_worker(folder, batch_tokens, max_shapes, seed):
    """Trains our model for a number of updates on each request."""
    import keras

    from keras_deepnmt.data.batches.batch_plan import BatchPlan
    from keras_deepnmt.data.batches.batch_shapes import choose_batch_shapes
    from keras_deepnmt.data.batches.batch_source import make_batch
    from keras_deepnmt.data.batches.datasets import training_dataset
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
    cells = choose_batch_shapes(store.lengths, batch_tokens, max_shapes)
    plan = BatchPlan(store.lengths, cells, seed)
    model.fit([make_batch(cell, []) for cell in cells], verbose=0)
    done = 0

    def train(updates):
        nonlocal done
        first = [None, 0.0]  # end of the first update, and its tokens

        def on_train_batch_end(batch, logs):
            if batch == 0:
                first[:] = time.perf_counter(), float(logs["tokens"])

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
        seconds = time.perf_counter() - first[0]
        done += updates + 1
        tokens = history.history["tokens"][0] - first[1]
        return [tokens, seconds, model.count_params()]

    answer_questions({"train": train})


def find_batch_tokens(tokens_per_update, wanted, start):
    """Finds the padded batch size whose updates have the wanted real tokens.

    `tokens_per_update` measures the real tokens in an update for a number of
    padded tokens, and `start` is the first number. Raises a `RuntimeError` if
    no try comes near enough.
    """
    batch_tokens, tried = start, {}
    for _ in range(TRIES):
        tokens = tokens_per_update(batch_tokens)
        tried[batch_tokens] = round(tokens)
        if abs(tokens / wanted - 1) <= TOLERANCE:
            return batch_tokens
        batch_tokens = round(batch_tokens * wanted / tokens)
    raise RuntimeError(
        f"No batch size of JoeyNMT has {wanted:.0f} target tokens in an "
        f"update, to {TOLERANCE:.0%}. Real tokens of the sizes tried: {tried}. "
        f"Measure more --updates."
    )


def measure(options):
    """Measures both alternately; returns the row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)

        def train_theirs(batch_tokens):
            # JoeyNMT reads YAML, of which JSON is a subset.
            file = folder / "joeynmt.yaml"
            configuration = joeynmt_configuration(
                folder,
                SIZES,
                batch_tokens=batch_tokens,
                updates=options.updates,
                learning_rate=LEARNING_RATE,
                smoothing=LABEL_SMOOTHING,
                seed=options.seed,
            )
            file.write_text(json.dumps(configuration))
            return train_joeynmt(options.joeynmt, file, options.updates)

        rounds = []
        with WorkerProcess(
            *(__file__, "--worker", folder, "--seed", options.seed),
            *("--batch-tokens", options.batch_tokens),
            *("--max-shapes", options.max_shapes),
        ) as ours:
            tokens, _, _ = ours("train", options.updates)
            their_batch_tokens = find_batch_tokens(
                lambda size: train_theirs(size)[1],
                tokens / options.updates,
                2 * options.batch_tokens,
            )
            for _ in range(options.rounds):
                tokens, seconds, parameters = ours("train", options.updates)
                speed, their_tokens, their_parameters = train_theirs(
                    their_batch_tokens
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
    parameters = {
        "keras_parameters": parameters,
        "joeynmt_parameters": their_parameters,
    }
    return _row(options, their_batch_tokens, rounds, parameters)


def _row(options, their_batch_tokens, rounds, parameters):
    ratios = [each.ours / each.theirs for each in rounds]
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
        **provenance("tensorflow", "keras"),
        "joeynmt": versions[0],
        "torch": versions[1],
        "dtype": "float32",
        "threads": len(os.sched_getaffinity(0)),
        "seed": options.seed,
        "corpus": "multi30k_tok_en_de",
        **SIZES,
        "batch_tokens": options.batch_tokens,
        "joeynmt_batch_tokens": their_batch_tokens,
        "max_shapes": options.max_shapes,
        "updates": options.updates,
        "rounds": options.rounds,
        **parameters,
        "keras_tokens_per_update": round(medians.our_tokens),
        "joeynmt_tokens_per_update": round(medians.their_tokens),
        "keras_tokens_per_second": round(medians.ours),
        "joeynmt_tokens_per_second": round(medians.theirs),
        "ratio_median": round(statistics.median(ratios), 2),
        "ratio_min": round(min(ratios), 2),
        "ratio_max": round(max(ratios), 2),
    }


def main():
    """Measures, or runs as the worker process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--joeynmt", help="Python of an environment with JoeyNMT 2.3"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--updates", type=int, default=20, help="measured updates per round"
    )
    parser.add_argument(
        "--batch-tokens",
        type=int,
        default=4_700,
        help="padded tokens of our batches",
    )
    parser.add_argument(
        "--max-shapes",
        type=int,
        default=10,
        help="maximum number of batch shapes, ours only",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "joeynmt_throughput.csv",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        run_worker(
            options.worker,
            options.batch_tokens,
            options.max_shapes,
            options.seed,
        )
        return
    if options.joeynmt is None:
        parser.error(
            "--joeynmt is required: the Python of an environment with JoeyNMT."
        )
    row = measure(options)
    append_row(options.output, row)
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
