"""Where the time of a beam search goes, against the matrix-product peak.

    python benchmarks/speed/decoding_profile.py

The search of one batch by a Transformer with random weights, with a fixed
number of steps, is compiled by XLA, and one call is recorded by TensorFlow's
profiler. The operations of the program are sorted into kinds by their opcode
and shapes, as in `step_profile.py`; rows hold shares of their sum.

The limit is the time that the matrix products of the search, over all positions
that its caches have, would take at the speed of one large product, which is
measured in the same run. Rows are appended to `results/decoding_profile.csv`.
"""

import argparse
import collections
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance
from benchmarks.speed.measuring.decoding_cases import SIZES, random_case
from benchmarks.speed.measuring.profile_rows import (
    print_profile,
    rows_of_kinds,
)
from benchmarks.speed.measuring.training_steps import PEAK_SIZE, matrix_product
from benchmarks.speed.step_profile import (
    median_seconds,
    read_instructions,
    record,
)

BATCH_SIZE, NUM_BEAMS, STEPS = 32, 4, 32
MOVED = ("copy", "transpose", "gather", "dynamic-update", "dynamic_update")


def kind_of(name, shape, opcode, operands, sizes):
    """Returns the kind of an operation of a search, from its shapes.

    `sizes` is an entry of `SIZES`.
    """
    vocabulary = sizes["vocabulary_size"]
    shapes = (shape, *operands)
    has_vocabulary = any(vocabulary in s for s in shapes)
    if opcode == "dot":
        if has_vocabulary:
            return "matrix products: output matrix"
        if len(shape) > 3:
            return "matrix products: attention"
        return "matrix products: projections, feed-forward"
    if has_vocabulary or any(_has_rows(s, vocabulary) for s in shapes):
        return "probabilities of the vocabulary, best tokens"
    if name.startswith(MOVED):
        return "writing to caches, re-ordering"
    if any(len(s) == 4 for s in shapes):
        return "attention: masks, softmax"
    return "element-wise, normalization, hypotheses"


def _has_rows(shape, vocabulary):
    """Whether a tensor has blocks of the vocabulary: `(R, blocks, size)`."""
    return len(shape) == 3 and shape[1] * shape[2] == vocabulary


def search_flops(sizes, source_length):
    """Counts the floating-point operations of a search's matrix products.

    Two per multiply-add: the encoder, keys and values of the source, and at
    each step projections, feed-forward networks, attention to all slots of the
    history and to the source, and the output matrix.
    """
    width, inner = sizes["hidden_dim"], sizes["intermediate_dim"]
    sources = BATCH_SIZE * source_length
    encoder = 4 * width**2 + 2 * width * inner + 2 * source_length * width
    once = sources * (
        sizes["num_encoder_layers"] * encoder
        + sizes["num_decoder_layers"] * 2 * width**2
    )
    slots = NUM_BEAMS * STEPS + source_length
    block = 6 * width**2 + 2 * width * inner + 2 * slots * width
    row = sizes["num_decoder_layers"] * block
    row += width * sizes["vocabulary_size"]
    return 2 * (once + BATCH_SIZE * NUM_BEAMS * STEPS * row)


def compiled_search(sizes):
    """Returns the compiled search of a model, and its argument."""
    import tensorflow as tf

    from keras_deepnmt.decoding import SearchOptions, search
    from keras_deepnmt.models import Transformer
    from keras_deepnmt.xla.tracing import compiled_by_xla

    model = Transformer(
        source_vocabulary_size=sizes["vocabulary_size"],
        target_vocabulary_size=sizes["vocabulary_size"],
        share_embeddings=True,
        **{n: x for n, x in sizes.items() if n != "vocabulary_size"},
    )
    options = SearchOptions(
        num_beams=NUM_BEAMS,
        min_length=STEPS - 1,
        max_length_ratio=0.0,
        max_extra_tokens=STEPS,
    )

    @tf.function(jit_compile=True, autograph=False)
    def function(source_ids):
        with compiled_by_xla():
            return search(model, source_ids, max_length=STEPS, options=options)

    case = random_case("tiny", BATCH_SIZE, NUM_BEAMS, STEPS)
    return function, tf.constant(case["sources"], "int32")


def profile(name, rounds):
    """Profiles the search of one size of model; returns its rows."""
    sizes = SIZES[name]
    function, source_ids = compiled_search(sizes)

    def call():
        return function(source_ids)["scores"].numpy()

    seconds = median_seconds(call, rounds)
    peak = 2 * PEAK_SIZE**3 / median_seconds(matrix_product(), rounds)
    text = function.experimental_get_compiler_ir(source_ids)(
        stage="optimized_hlo"
    )
    with tempfile.TemporaryDirectory() as folder:
        events = record(call, folder)
    instructions = read_instructions(text)
    total = collections.Counter()
    for event, milliseconds in events:
        if event in instructions:
            total[kind_of(event, *instructions[event], sizes)] += milliseconds
    flops = search_flops(sizes, source_ids.shape[1])
    columns = {
        **provenance("tensorflow", "keras"),
        "model": name,
        **sizes,
        "batch_size": BATCH_SIZE,
        "num_beams": NUM_BEAMS,
        "steps": STEPS,
        "rounds": rounds,
        "search_ms_median": round(seconds * 1e3, 1),
        "peak_gflops": round(peak / 1e9, 1),
        "limit_ms": round(flops / peak * 1e3, 1),
    }
    return rows_of_kinds(columns, total)


def main():
    """Profiles the sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=SIZES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "decoding_profile.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for name in [options.only] if options.only else SIZES:
        rows = profile(name, options.rounds)
        append_rows(options.output, rows)
        print_profile(name, rows, "search_ms_median")


if __name__ == "__main__":
    main()
