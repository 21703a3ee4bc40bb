"""Trains deep post-norm models with other initial weights or residuals.

    python benchmarks/quality/deep_post_norm.py --work-folder FOLDER

Transformers of 18 encoder and 6 decoder layers of width 128 with post-norm are
trained on Multi30k, English to German, with pairs of up to 24 tokens. All have
the same batches, seed, optimizer and schedule: Adam with a learning rate that
rises in 100 updates and then stays. They differ in one thing each:

* `plain`: nothing; query, key and value projections start with a tenth of the
  variance of Glorot's initializer
* `Glorot`: these start with Glorot's initializer, as elsewhere
* `DS-Init`: all kernels start as in Zhang et al. (2019)
* `DeepNorm`: the residual connections and initial weights of Wang et al. (2022)

The models are trained in turns, 50 updates each. Every 50 updates of a model
are a row of `results/deep_post_norm.csv`, with the mean of their training loss.
Called again with the same `--work-folder`, the script goes on after the last
row.
"""

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance, read_rows

RESULTS = Path(__file__).parent / "results" / "deep_post_norm.csv"
RECIPE = "transformer_tiny.multi30k_en_de"
MODELS = ("plain", "DeepNorm", "DS-Init", "Glorot")
SIZES = dict(
    num_encoder_layers=18,
    num_decoder_layers=6,
    hidden_dim=128,
    intermediate_dim=256,
    num_heads=4,
    dropout=0.1,
    share_embeddings=True,
)
MAX_TOKENS = 24
BATCH_TOKENS = 384
EVERY = 50
WARMUP = 100


def main(arguments: list[str] | None = None) -> None:
    """Trains the models in turns, from where they were."""
    options = _parse(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    folder = options.work_folder
    data = _prepare(folder)
    runs = [Run(name, data, folder, options) for name in options.models]
    for updates in range(0, options.steps, EVERY):
        for run in runs:
            if run.updates == updates:
                append_rows(options.output, [run.go_on()])


def _prepare(folder):
    """Prepares the pairs that are short enough."""
    from benchmarks.quality.rows.corpora import prepared_corpus
    from keras_deepnmt.recipes import load_recipe

    corpus = load_recipe(RECIPE).data
    corpus = dataclasses.replace(corpus, max_tokens=MAX_TOKENS, test=None)
    return prepared_corpus(corpus, folder)


class Run:
    """The training of a model, which can be broken off after any row."""

    def __init__(self, name, data, folder, options):
        import keras

        from keras_deepnmt import data as batches
        from keras_deepnmt.models import Transformer
        from keras_deepnmt.training import CheckpointStore

        keras.utils.set_random_seed(options.seed)
        size = data.source_tokenizer.vocabulary_size
        self.model = Transformer(size, size, **SIZES, **_differences()[name])
        schedule = keras.optimizers.schedules.PolynomialDecay(
            0.0, WARMUP, options.peak
        )
        self.model.compile(
            keras.optimizers.Adam(schedule, 0.9, 0.98, 1e-9),
            # Compiling a step of 24 blocks takes minutes.
            jit_compile=False,
        )
        store = data.store("train")
        (shape,) = batches.choose_batch_shapes(store.lengths, BATCH_TOKENS, 1)
        plan = batches.BatchPlan(store.lengths, (shape,), seed=options.seed)
        self._dataset = lambda start: batches.training_dataset(
            store, plan, start, EVERY
        )
        self.columns = {
            "model": name,
            "seed": options.seed,
            "peak": options.peak,
            "warmup": WARMUP,
            "parameters": self.model.count_params(),
            "sentences": shape.batch_size,
            "length": shape.target_length,
        }
        key = {
            column: str(self.columns[column])
            for column in ("model", "seed", "peak")
        }
        self.updates = max(
            (
                int(row["updates"])
                for row in read_rows(options.output)
                if key.items() <= row.items()
            ),
            default=0,
        )
        states = folder / f"{name} {options.seed} {options.peak}"
        self._states = CheckpointStore(states)
        if self.updates:
            self._states.restore(self.model)

    def go_on(self) -> dict:
        """Makes 50 updates; returns their row."""
        start = time.perf_counter()
        logs = self.model.fit(
            self._dataset(self.updates), steps_per_epoch=EVERY, verbose=0
        ).history
        self.updates += EVERY
        self._states.save(self.model, self.updates)
        row = {
            **provenance("tensorflow", "keras"),
            **self.columns,
            "updates": self.updates,
            "loss": round(logs["loss"][-1], 4),
            "minutes": round((time.perf_counter() - start) / 60, 2),
        }
        print(row["model"], row["updates"], row["loss"], flush=True)
        return row


def _differences():
    """The arguments of `models.Transformer` in which the models differ."""
    from keras_deepnmt.layers import DeepNorm, DepthScaledInitializer

    return {
        "plain": {},
        "Glorot": {"attention_initializer": "glorot_uniform"},
        "DS-Init": {"kernel_initializer": DepthScaledInitializer()},
        "DeepNorm": {"residual_connection": DeepNorm()},
    }


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peak", type=float, default=0.001)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument(
        "--work-folder",
        type=Path,
        required=True,
        help="keeps the prepared data and the states of the models here",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
