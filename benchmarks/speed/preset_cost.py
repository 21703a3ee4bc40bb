"""What each preset costs beside the plain model of its backbone and size.

    python benchmarks/speed/preset_cost.py
    python benchmarks/speed/preset_cost.py --only "hybrid_*" --again

Every Transformer is counted beside the same model with empty slots, every
convolutional model beside the residual one of its size. The tiny ones are
measured as well: a training step (XLA, dropout, Adam) on one fixed batch, and
beam search with 4 beams over as many steps for everyone, in turns with
`transformer_tiny` or `conv_seq2seq_tiny`; ratios are medians over the rounds.
Compile seconds are those of the first call less those of a later one. Larger
presets are counted in a TensorFlow graph, which allocates no weights.

One row a preset goes to the table that the package carries,
`keras_deepnmt/zoo/measured_costs.csv`, as soon as it is measured; a later
start goes on with the presets that have no row of the same commit.
"""

import argparse
import fnmatch
import gc
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.parameter_counts import (
    Counter,
    is_measured,
    plain_of,
    timed_beside,
    vocabulary_size,
)
from benchmarks.shared.result_rows import origin, read_rows, replace_row

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "keras_deepnmt" / "zoo" / "measured_costs.csv"
SIZES = {
    "full": dict(batch_size=64, length=24, sentences=8, steps=24, overrides={}),
    "smoke": dict(
        batch_size=2,
        length=4,
        sentences=2,
        steps=3,
        overrides=dict(num_encoder_layers=1, num_decoder_layers=1),
    ),
}
NUM_BEAMS = 4
WAYS = ("step", "decode")


class Endless:
    """A model that never ends a sentence: every search is equally long."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)

    def log_probs(self, scores):
        """Gives log-probabilities in which the end is as good as impossible."""
        from keras import ops

        from keras_deepnmt.masks import END_ID

        log_probs = self._model.log_probs(scores)
        is_end = ops.equal(ops.arange(log_probs.shape[-1]), END_ID)
        return ops.where(is_end, -1e6, log_probs)


class Subject:
    """A preset whose step and search are compiled and can be timed.

    Args:
        name: str. The preset.
        sizes: dict of batch size, length, sentences and steps.
        overrides: dict of arguments that replace the preset's.
    """

    def __init__(self, name, sizes, overrides):
        import keras
        import numpy as np
        import tensorflow as tf

        from keras_deepnmt.decoding import beam_search
        from keras_deepnmt.decoding.compiled import compile_for
        from keras_deepnmt.zoo import create_model

        most = vocabulary_size(name)
        keras.utils.set_random_seed(0)
        model = create_model(name, most, most, **overrides)
        self.parameters = model.count_params()
        model.compile(keras.optimizers.Adam(1e-4))
        random = np.random.default_rng(0)
        shape = (3, sizes["batch_size"], sizes["length"])
        ids = random.integers(4, most, shape).astype("int32")
        source, target, labels = map(tf.constant, ids)
        batch = ({"source_ids": source, "target_ids": target}, labels)
        step = tf.function(model.train_step, autograph=False)
        search = compile_for(
            model,
            lambda model, source_ids: beam_search(
                Endless(model),
                source_ids,
                num_beams=NUM_BEAMS,
                max_length=sizes["steps"],
            )["ids"],
        )
        sentences = ids[0, : sizes["sentences"]]
        self._functions = {
            "step": lambda: float(step(batch)["loss"]),
            "decode": lambda: search(sentences),
        }
        self.compile_seconds = {
            way: self.seconds(way) - self.seconds(way) for way in WAYS
        }

    def seconds(self, way):
        """Times one call."""
        start = time.perf_counter()
        self._functions[way]()
        return time.perf_counter() - start


def measure(subject, plain, options):
    """Times a preset and the plain model in turns.

    Args:
        subject: a `Subject`.
        plain: the one it is compared with, or itself.
        options: what the parser returned: `rounds`, and `seconds` after which
            there are no more.

    Returns:
        Dict of ratios by way: lists, one entry a round.
    """
    ratios = {way: [] for way in WAYS}
    for way in WAYS:
        start = time.perf_counter()
        for number in range(options.rounds):
            # Whoever comes second finds warmer caches.
            if number % 2:
                ours, theirs = subject.seconds(way), plain.seconds(way)
            else:
                theirs, ours = plain.seconds(way), subject.seconds(way)
            ratios[way].append(ours / theirs)
            if time.perf_counter() - start > options.seconds:
                break
    return ratios


def costs(name, count, sizes, options, subjects):
    """Measures or counts one preset; gives its row.

    Args:
        name: str. The preset.
        count: a `Counter`.
        sizes: one of `SIZES`.
        options: what the parser returned.
        subjects: dict in which the plain `Subject`s stay for all presets.
    """
    parameters = count(name)
    plain, empty = plain_of(name)
    row = {
        "preset": name,
        "vocabulary_size": vocabulary_size(name),
        "parameters": parameters,
        "extra_parameters": parameters - count(plain, **empty),
        **{f"{way}_ratio": "" for way in WAYS},
        **{f"{way}_compile_seconds": "" for way in WAYS},
        "rounds": "",
    }
    if is_measured(name):
        overrides = sizes["overrides"]
        beside = timed_beside(name)
        if beside not in subjects:
            subjects[beside] = Subject(beside, sizes, overrides)
            # A process is slow at first, and the first preset would look fast.
            measure(subjects[beside], subjects[beside], options)
        subject = subjects[beside]
        if name != beside:
            subject = Subject(name, sizes, overrides)
        assert subject.parameters == parameters
        ratios = measure(subject, subjects[beside], options)
        row["rounds"] = min(map(len, ratios.values()))
        for way in WAYS:
            row[f"{way}_ratio"] = round(statistics.median(ratios[way]), 3)
            seconds = subject.compile_seconds[way]
            row[f"{way}_compile_seconds"] = round(seconds, 1)
    return row | origin("tensorflow", "keras")


def done_before(path, commit):
    """Names the presets that have a row of this very commit."""
    # Files that differ from the commit may have changed since.
    if commit.endswith("+"):
        return set()
    rows = read_rows(path)
    return {row["preset"] for row in rows if row["commit"] == commit}


def main(arguments=None):
    """Measures every preset that has no row of this commit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="presets by name"
    )
    parser.add_argument(
        "--again", action="store_true", help="measure all of them anew"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--seconds",
        type=float,
        default=8.0,
        help="most seconds for a preset's turns of one way",
    )
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--output", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from keras_deepnmt.zoo import list_models

    names = fnmatch.filter(list_models(), options.only)
    commit = origin()["commit"]
    done = set() if options.again else done_before(options.output, commit)
    sizes = SIZES[options.size]
    count, subjects = Counter(sizes["overrides"]), {}
    for name in names:
        if name in done:
            continue
        row = costs(name, count, sizes, options, subjects)
        replace_row(options.output, row, "preset")
        print(", ".join(f"{key} {value}" for key, value in row.items()))
        gc.collect()


if __name__ == "__main__":
    main()
