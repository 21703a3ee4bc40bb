"""Measures whether a model translates longer sentences than it was trained on.

    python benchmarks/quality/length_extrapolation.py

A source is a sequence of digits, its translation the same digits in reverse.
A small Transformer of each position encoding is trained on sequences of 1 to 20
digits, and then translates sequences of 10 to 40 digits by greedy search. All
encodings have the same data, batches and seed.

Every length of a position encoding and a seed is a row of
`results/length_extrapolation.csv`. Called again, the script measures what has
no row yet.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance, read_rows

RESULTS = Path(__file__).parent / "results" / "length_extrapolation.csv"
ENCODINGS = {
    "sinusoidal": "sinusoidal",
    "learned": {"LearnedPositionEmbedding": {"add_to_inputs": True}},
    "Shaw": "RelativePositionRepresentations",
    "T5": "RelativePositionBias",
    "rotary": "RotaryPositionEmbedding",
    "ALiBi": "AttentionLinearBiases",
}
LONGEST = 20  # in training, in digits
LENGTHS = (10, 20, 25, 30, 40)
SIZES = dict(
    hidden_dim=64,
    intermediate_dim=128,
    num_heads=4,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dropout=0.0,
    normalize_first=True,
    share_embeddings=True,
)
FIRST_DIGIT = 4  # after the special ids
BATCH_SIZE = 64


def main(arguments: list[str] | None = None) -> None:
    """Trains and tests what has no row yet."""
    options = _parse(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for seed in options.seeds:
        for name in ENCODINGS:
            key = {"positions": name, "seed": str(seed)}
            rows = read_rows(options.output)
            if not any(key.items() <= row.items() for row in rows):
                found = measure(name, seed, options)
                append_rows(options.output, found)
                print(*(f"{row['length']}: {row['digits']}" for row in found))


def measure(name, seed, options) -> list[dict]:
    """Trains a model and returns its rows."""
    import keras
    import numpy as np

    from keras_deepnmt.models import Transformer

    keras.utils.set_random_seed(seed)
    vocabulary_size = FIRST_DIGIT + 10
    model = Transformer(
        vocabulary_size,
        vocabulary_size,
        position_encoding=ENCODINGS[name],
        max_length=2 * max(LENGTHS),
        **SIZES,
    )
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        options.steps,
        warmup_target=0.002,
        warmup_steps=options.steps // 10,
    )
    model.compile(keras.optimizers.Adam(schedule, clipnorm=1.0))
    random = np.random.default_rng(seed)
    lengths = random.integers(1, LONGEST + 1, BATCH_SIZE * options.steps)
    inputs, labels = reversed_digits(lengths, random)
    start = time.perf_counter()
    history = model.fit(inputs, labels, batch_size=BATCH_SIZE, verbose=0)
    minutes = (time.perf_counter() - start) / 60
    return [
        {
            **provenance("tensorflow", "keras"),
            "positions": name,
            "seed": seed,
            "parameters": model.count_params(),
            "updates": options.steps,
            "minutes": round(minutes, 2),
            "loss": round(history.history["loss"][-1], 4),
            "longest_in_training": LONGEST,
            "length": length,
            "sentences": options.sentences,
            **scores,
        }
        for length, scores in translate(model, options.sentences).items()
    ]


def translate(model, number) -> dict:
    """Returns the shares of right sentences and digits, in percent.

    They are those of `number` sentences of each length.
    """
    import numpy as np

    from keras_deepnmt.decoding import greedy_search
    from keras_deepnmt.xla.compiled import compile_for

    longest = max(LENGTHS)
    # The same sentences for all models.
    inputs, labels = reversed_digits(
        np.repeat(LENGTHS, number), np.random.default_rng(0), longest
    )
    search = compile_for(
        model,
        lambda model, source_ids: greedy_search(
            model, source_ids, max_length=longest + 1
        )["ids"],
    )
    found = np.asarray(search(inputs["source_ids"]))
    same = (found == labels).reshape(len(LENGTHS), number, longest + 1)
    return {
        length: {
            "exact": round(100 * float(each.all(axis=1).mean()), 2),
            "digits": round(100 * float(each[:, :length].mean()), 2),
        }
        for length, each in zip(LENGTHS, same, strict=True)
    }


def reversed_digits(lengths, random, longest=LONGEST):
    """Returns inputs and labels of a model for sequences of some lengths."""
    import numpy as np

    from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID

    shape = (len(lengths), longest + 1)
    digits = random.integers(FIRST_DIGIT, FIRST_DIGIT + 10, shape)
    places = np.arange(longest + 1)
    ends = np.asarray(lengths)[:, None]
    reversed_places = np.maximum(ends - 1 - places, 0)
    turned = np.take_along_axis(digits, reversed_places, axis=1)

    def ended(ids):
        ids = np.where(places == ends, END_ID, ids)
        return np.where(places > ends, PADDING_ID, ids).astype("int32")

    source_ids, labels = ended(digits), ended(turned)
    target_ids = np.roll(labels, 1, axis=1)
    target_ids[:, 0] = BEGIN_ID
    target_ids = np.where(labels == PADDING_ID, PADDING_ID, target_ids)
    return {"source_ids": source_ids, "target_ids": target_ids}, labels


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
