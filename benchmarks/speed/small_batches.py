"""What a translator gains by what it does for small models and few sentences.

    python benchmarks/speed/small_batches.py

Two ways, each with and without it in turns, in one process:

* `parts`: a single batch of 32 sentences is divided among the cores;
* `prepared projection`: the transposed output matrix is made once for all steps
  of a search.

The models have random weights and the source sentences random tokens; there are
4 beams and 32 steps. `ratio` is the speed with it relative to that without it,
of one round. One row for each model and number of sentences is appended to
`results/small_batches.csv`. `FEW_WEIGHTS` and `FEW_STATES` of `xla/tuned.py`
follow from them.
"""

import argparse
import contextlib
import sys
import time
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance
from benchmarks.speed.measuring.decoding_cases import random_case
from benchmarks.speed.measuring.decoding_rows import measure_in_turns, spread

RESULTS = Path(__file__).parent / "results" / "small_batches.csv"
NUM_BEAMS, STEPS = 4, 32
# Width, size of the vocabulary, and number of layers of each side.
MODELS = ((128, 4_000, 4), (256, 8_000, 4), (384, 16_000, 4), (512, 32_000, 6))
DIVIDED_SENTENCES = 32
SENTENCES = (1, 2, 4, 8, 16)
CONSTANTS = {
    "parts": "keras_deepnmt.xla.tuned.FEW_WEIGHTS",
    "prepared projection": "keras_deepnmt.xla.tuned.FEW_STATES",
}
# What makes a way be used for every model and number of states, or for none.
ALWAYS = {"parts": 10**12, "prepared projection": range(10**6)}
NEVER = {"parts": 0, "prepared projection": range(0)}


def make_model(width, vocabulary_size, num_layers):
    """Returns a Transformer with random weights."""
    import keras

    from keras_deepnmt.models import Transformer

    keras.utils.set_random_seed(0)
    return Transformer(
        vocabulary_size,
        vocabulary_size,
        width,
        4 * width,
        width // 64 or 1,
        num_layers,
        num_layers,
        share_embeddings=True,
    )


def translate_function(model, values, num_sentences):
    """Returns a function that translates random sentences; it is compiled.

    `values` are those of `CONSTANTS`, by way.
    """
    from benchmarks.speed.measuring.decoding_search import (
        Search,
        WordTokenizer,
    )
    from keras_deepnmt.translator.translator import Translator

    tokenizer = WordTokenizer(model.target_vocabulary_size)
    with contextlib.ExitStack() as stack:
        for way, value in values.items():
            stack.enter_context(mock.patch(CONSTANTS[way], value))
        search = Search(Translator(model, tokenizer, tokenizer, compiled=True))
        search.prepare(
            random_case("tiny", num_sentences, NUM_BEAMS, STEPS)
            | {"batch_size": DIVIDED_SENTENCES}
        )
        search.translate()
    return search.translate


def measure(model, way, num_sentences, rounds, repetitions):
    """Returns the columns of a way's gain for a model."""
    other = {name: NEVER[name] for name in CONSTANTS if name != way}

    def timed(translate):
        def seconds():
            start = time.perf_counter()
            for _ in range(repetitions):
                translate()
            return (time.perf_counter() - start) / repetitions

        return seconds

    functions = {
        name: translate_function(
            model, {**other, way: choice[way]}, num_sentences
        )
        for name, choice in (("with", ALWAYS), ("without", NEVER))
    }
    same = functions["with"]()["ids"] == functions["without"]()["ids"]
    seconds = measure_in_turns(
        {name: timed(function) for name, function in functions.items()},
        rounds,
        float("inf"),
    )
    pairs = zip(seconds["without"], seconds["with"], strict=True)
    return {
        "rounds": rounds,
        **spread("ms_with", [1e3 * s for s in seconds["with"]], 4),
        **spread("ms_without", [1e3 * s for s in seconds["without"]], 4),
        **spread("ratio", [a / b for a, b in pairs], 4),
        "equal_translations": same,
    }


def main():
    """Measures and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(CONSTANTS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    first = {**provenance("tensorflow", "keras"), "seed": 0}
    for width, vocabulary_size, num_layers in MODELS:
        model = make_model(width, vocabulary_size, num_layers)
        for way in [options.only] if options.only else CONSTANTS:
            numbers = (DIVIDED_SENTENCES,) if way == "parts" else SENTENCES
            for number in numbers:
                row = {
                    **first,
                    "way": way,
                    "hidden_dim": width,
                    "num_layers": num_layers,
                    "vocabulary_size": vocabulary_size,
                    "weights": model.count_params(),
                    "sentences": number,
                    "num_beams": NUM_BEAMS,
                    "steps": STEPS,
                    **measure(
                        model,
                        way,
                        number,
                        options.rounds,
                        repetitions=max(1, 640 // (width * number)),
                    ),
                }
                append_rows(options.output, [row])
                print(
                    f"{way}, width {width}, {number} sentences: "
                    f"{row['ratio_median']} ({row['ratio_min']} to "
                    f"{row['ratio_max']}), {row['ms_with_median']} ms"
                )


if __name__ == "__main__":
    main()
