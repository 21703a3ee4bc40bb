"""Cost of each preset, compared with the plain model of its kind and size.

    python benchmarks/speed/preset_cost.py
    python benchmarks/speed/preset_cost.py --only "hybrid_*" "dense_*" --again

The parameters of every Transformer are compared with those of the same model
with empty slots; those of every convolutional model with the residual one of
its size. The tiny presets are timed as well, alternately with
`transformer_tiny` or `conv_seq2seq_tiny`: a training step (XLA, dropout, Adam)
on one fixed batch, and beam search of 32 sentences with 4 beams and 32 steps.
Ratios are medians over the rounds. Compile seconds are the time of the first
call minus that of a later one. Larger presets are counted in a TensorFlow
graph, which allocates no weights.

One row per preset is written to the table that the package contains,
`keras_deepnmt/zoo/measured_costs.csv`, as soon as it is measured. If the script
is started again, it skips presets that have a row of the same commit.
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
    ParameterCounter,
    is_measured,
    plain_model_of,
    timing_baseline,
    vocabulary_size,
)
from benchmarks.shared.result_rows import provenance, read_rows, replace_row

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "keras_deepnmt" / "zoo" / "measured_costs.csv"
SIZES = {
    "full": dict(
        batch_size=64, length=24, sentences=32, steps=32, overrides={}
    ),
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


def fixed_length_options(steps):
    """Returns options of a search whose translations all have `steps` tokens.

    The end token is the last of them.
    """
    from keras_deepnmt.decoding import SearchOptions

    return SearchOptions(
        num_beams=NUM_BEAMS,
        min_length=steps - 1,
        max_length_ratio=0.0,
        max_extra_tokens=steps,
    )


class CompiledPreset:
    """A preset whose training step and search are compiled and can be timed.

    `sizes` has the batch size, the length, the number of sentences and of
    search steps; `overrides` are arguments that override the preset's.
    """

    def __init__(self, name, sizes, overrides):
        import keras
        import numpy as np
        import tensorflow as tf

        from keras_deepnmt.decoding import beam_search
        from keras_deepnmt.xla.compiled import compile_for
        from keras_deepnmt.zoo import create_model

        vocabulary = vocabulary_size(name)
        keras.utils.set_random_seed(0)
        model = create_model(name, vocabulary, vocabulary, **overrides)
        self.parameters = model.count_params()
        model.compile(keras.optimizers.Adam(1e-4))
        random = np.random.default_rng(0)
        shape = (3, sizes["batch_size"], sizes["length"])
        ids = random.integers(4, vocabulary, shape).astype("int32")
        source, target, labels = map(tf.constant, ids)
        batch = ({"source_ids": source, "target_ids": target}, labels)
        step = tf.function(model.train_step, autograph=False)
        search = compile_for(
            model,
            lambda model, source_ids: beam_search(
                model,
                source_ids,
                options=fixed_length_options(sizes["steps"]),
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


def measure(compiled, plain, options):
    """Times a preset and the plain model alternately.

    Stops after `options.rounds`, or after `options.seconds` for each way.
    Returns lists of ratios by way, one entry per round.
    """
    ratios = {way: [] for way in WAYS}
    for way in WAYS:
        # Slow, after other work: not counted.
        for each in (compiled, plain):
            each.seconds(way)
        start = time.perf_counter()
        for number in range(options.rounds):
            # The second one profits from warm caches: the order alternates.
            if number % 2:
                ours, theirs = compiled.seconds(way), plain.seconds(way)
            else:
                theirs, ours = plain.seconds(way), compiled.seconds(way)
            ratios[way].append(ours / theirs)
            if time.perf_counter() - start > options.seconds:
                break
    return ratios


def measure_row(name, count, sizes, options, plain_presets):
    """Measures or counts one preset; returns its row.

    `plain_presets` caches the plain models' `CompiledPreset`s between presets.
    """
    parameters = count(name)
    plain, empty = plain_model_of(name)
    row = {
        "preset": name,
        "vocabulary_size": vocabulary_size(name),
        "parameters": parameters,
        "extra_parameters": parameters - count(plain, **empty),
        **{f"{way}_ratio": "" for way in WAYS},
        **{f"{way}_compile_seconds": "" for way in WAYS},
        "rounds": "",
        **dict.fromkeys(("decode_ratio_min", "decode_ratio_max"), ""),
        **dict.fromkeys(("decode_sentences", "decode_steps"), ""),
    }
    if is_measured(name):
        overrides = sizes["overrides"]
        baseline = timing_baseline(name)
        if baseline not in plain_presets:
            plain_presets[baseline] = CompiledPreset(baseline, sizes, overrides)
            # A process is slow at first, which would make the first preset's
            # ratio too small.
            measure(plain_presets[baseline], plain_presets[baseline], options)
        compiled = plain_presets[baseline]
        if name != baseline:
            compiled = CompiledPreset(name, sizes, overrides)
        assert compiled.parameters == parameters
        ratios = measure(compiled, plain_presets[baseline], options)
        row["rounds"] = min(map(len, ratios.values()))
        for way in WAYS:
            row[f"{way}_ratio"] = round(statistics.median(ratios[way]), 3)
            seconds = compiled.compile_seconds[way]
            row[f"{way}_compile_seconds"] = round(seconds, 1)
        row["decode_ratio_min"] = round(min(ratios["decode"]), 3)
        row["decode_ratio_max"] = round(max(ratios["decode"]), 3)
        row["decode_sentences"] = sizes["sentences"]
        row["decode_steps"] = sizes["steps"]
    return row | provenance("tensorflow", "keras")


def measured_presets(path, commit):
    """Returns the presets that have a row of this commit."""
    # With `+`, files differ from the commit and may have changed since.
    if commit.endswith("+"):
        return set()
    rows = read_rows(path)
    return {row["preset"] for row in rows if row["commit"] == commit}


def main(arguments=None):
    """Measures every preset that has no row of this commit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        nargs="+",
        default=["*"],
        metavar="PATTERN",
        help="names of presets; * is a wildcard",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="measure presets again that have a row",
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--seconds",
        type=float,
        default=8.0,
        help="maximum seconds for measuring the step, or the search",
    )
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--output", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from keras_deepnmt.zoo import list_models

    names = [
        name
        for name in list_models()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in options.only)
    ]
    commit = provenance()["commit"]
    done = set() if options.again else measured_presets(options.output, commit)
    sizes = SIZES[options.size]
    count, plain_presets = ParameterCounter(sizes["overrides"]), {}
    for name in names:
        if name in done:
            continue
        row = measure_row(name, count, sizes, options, plain_presets)
        replace_row(options.output, row, "preset")
        print(", ".join(f"{key} {value}" for key, value in row.items()))
        gc.collect()


if __name__ == "__main__":
    main()
