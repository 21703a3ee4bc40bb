"""Memory of a process that translates again and again, texts of any length.

    python benchmarks/memory/repeated_calls.py

A small Transformer with random weights, whose tokenizers have read the bundled
corpus, translates 1 to 32 sources in each call, of 1 to 100 words each: in
three quarters of the calls they are short. A quarter of the calls have
prefixes, and one in 16 asks for translations of up to 30 tokens; the others
have up to 5, so that 10,000 calls take minutes. There are three sides, each in
a process of its own:

* `translator`: `Translator`, compiled, by turns with 4 beams and greedy
* `plain`: the same with `compiled=False`
* `export`: the SavedModel of that translator with 4 beams, in a process that
  has only TensorFlow and TensorFlow-Text

A row has the resident memory of the process after the first 500 calls, and the
least and the most after each hundred calls from then on, in MiB, and what they
differ from it by. Rows are appended to `results/repeated_calls.csv`.

The C library of Linux, glibc, keeps freed memory in up to 8 heaps per core, one
for each of some threads. The environment variable MALLOC_ARENA_MAX sets how
many, and stands in the row:

    MALLOC_ARENA_MAX=1 python benchmarks/memory/repeated_calls.py --sides export
"""

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

# Nothing of the package: an export runs without it.
from benchmarks.shared.result_rows import append_row, provenance
from benchmarks.shared.worker_process import WorkerProcess, answer_questions

SIDES = ("translator", "plain", "export")
EVERY = 100
SENTENCES = (1, 1, 1, 2, 3, 5, 8, 16, 32)
SIZES = {
    "hidden_dim": 32,
    "intermediate_dim": 64,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}
SEARCH = {"max_length_ratio": 0.0, "max_extra_tokens": 5}
LONGER = 30


def write_tokenizers(folder):
    """Trains the two tokenizers; writes words to translate."""
    from keras_deepnmt.data.demo import demo_pairs
    from keras_deepnmt.data.preparation.tokenizer_training import (
        train_tokenizer,
    )

    pairs = demo_pairs(2_000)
    for side in ("source", "target"):
        texts = [getattr(pair, side) for pair in pairs]
        train_tokenizer(texts, Path(folder, f"{side}.model"), 500)
        words = " ".join(texts).split()
        Path(folder, f"{side}.json").write_text(json.dumps(words))


def make_translator(folder, compiled=True):
    """Returns a translator with the tokenizers of a folder."""
    import keras

    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.translator import Translator
    from keras_deepnmt.zoo import create_model

    tokenizers = [
        Tokenizer(Path(folder, f"{side}.model"))
        for side in ("source", "target")
    ]
    keras.utils.set_random_seed(0)
    vocabularies = [each.vocabulary_size for each in tokenizers]
    model = create_model("transformer_tiny", *vocabularies, **SIZES)
    return Translator(model, *tokenizers, compiled=compiled, **SEARCH)


def draw_request(words, draw):
    """Draws the sources of a call, and what is given for each of them."""
    texts = []
    most = draw.choice([10, 20, 40, 100])
    for _ in range(draw.choice(SENTENCES)):
        number = draw.randint(1, most)
        start = draw.randrange(len(words["source"]) - number)
        texts.append(" ".join(words["source"][start : start + number]))
    given = {}
    if draw.random() < 1 / 4:
        start = draw.randrange(len(words["target"]) - 2)
        given["prefixes"] = [
            " ".join(words["target"][start : start + draw.randint(0, 2)])
            for _ in texts
        ]
    if draw.random() < 1 / 16:
        given["max_lengths"] = [LONGER] * len(texts)
    return texts, given


def resident_mib():
    """Returns the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Calls:
    """Translates drawn sources in calls; runs in a process of its own."""

    def start(self, side, folder):
        """Loads the model."""
        self._words = {
            side: json.loads(Path(folder, f"{side}.json").read_text())
            for side in ("source", "target")
        }
        self._draw = random.Random(0)
        if side == "export":
            self._translate = _exported(Path(folder, "export"))
        else:
            self._translate = _translating(folder, side == "translator")

    def call(self, number):
        """Makes calls; returns the memory after them, and their sentences."""
        sentences = 0
        for _ in range(number):
            texts, given = draw_request(self._words, self._draw)
            self._translate(texts, given, self._draw.choice((1, 4)))
            sentences += len(texts)
        return resident_mib(), sentences


def _translating(folder, compiled):
    translator = make_translator(folder, compiled)

    def translate(texts, given, num_beams):
        translator.num_beams = num_beams
        translator.translate(texts, **given)

    return translate


def _exported(folder):
    sys.modules["keras_deepnmt"] = None  # importing it now raises an error
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the tokenizers' operations

    model = tf.saved_model.load(str(folder / "1"))

    def translate(texts, given, num_hypotheses):
        if not given:
            model.signatures["serving_default"](text=tf.constant(texts))
            return
        model.signatures["translate_given"](
            text=tf.constant(texts),
            prefix=tf.constant(given.get("prefixes", []), tf.string),
            constraints=tf.zeros((0, 0), tf.string),
            max_length=tf.constant(given.get("max_lengths", []), tf.int32),
            num_hypotheses=tf.constant(num_hypotheses),
            length_penalty=tf.constant(0.6),
        )

    return translate


def export(folder):
    """Exports the translator."""
    from keras_deepnmt.serving import export

    return str(export(make_translator(folder), Path(folder, "export")))


def measure(side, folder, options):
    """Makes the calls of one side; returns the columns of its row."""
    mib, sentences, start = [], 0, time.perf_counter()
    with WorkerProcess(__file__, "--answer") as worker:
        worker("start", side, folder)
        # After Ctrl-C there is a row of the calls so far.
        with contextlib.suppress(KeyboardInterrupt):
            while len(mib) < options.calls // EVERY:
                memory, number = worker("call", EVERY)
                mib.append(memory)
                sentences += number
                print(
                    f"{side}: {EVERY * len(mib):,} calls, {memory:,.1f} MiB",
                    flush=True,
                )
    seconds = time.perf_counter() - start
    return {
        "side": side,
        "calls": EVERY * len(mib),
        "warm_up": options.warm_up,
        "sentences": sentences,
        **memory_columns(mib, options.warm_up),
        "calls_per_second": round(EVERY * len(mib) / seconds, 2),
        "malloc_arena_max": os.environ.get("MALLOC_ARENA_MAX", ""),
    }


def memory_columns(mib, warm_up):
    """Returns the columns of the memory after each hundred calls.

    Example:
    >>> memory_columns([90.0, 200.0, 199.0, 202.0], 200)["percent_most"]
    1.0
    """
    first, *later = mib[warm_up // EVERY - 1 :]
    return {
        "mib_after_first_100": round(mib[0], 1),
        "mib_after_warm_up": round(first, 1),
        "mib_least": round(min(later), 1),
        "mib_most": round(max(later), 1),
        "percent_least": round(100 * (min(later) / first - 1), 2),
        "percent_most": round(100 * (max(later) / first - 1), 2),
    }


def parse():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--warm-up", type=int, default=500)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "repeated_calls.csv",
    )
    return parser.parse_args()


def main():
    """Measures and appends the rows."""
    options = parse()
    columns = provenance("tensorflow", "keras")
    with tempfile.TemporaryDirectory() as folder:
        write_tokenizers(folder)
        with WorkerProcess(__file__, "--answer") as worker:
            if "export" in options.sides:
                worker("export", folder)
        for side in options.sides:
            row = {**columns, **measure(side, folder, options)}
            append_row(options.output, row)
            print(json.dumps(row, indent=2), flush=True)


if __name__ == "__main__":
    if "--answer" in sys.argv:
        calls = Calls()
        answer_questions(
            {"start": calls.start, "call": calls.call, "export": export}
        )
    else:
        main()
