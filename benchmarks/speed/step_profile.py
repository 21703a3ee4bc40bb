"""Where the time of a training step goes, against the matrix-product peak.

    python benchmarks/speed/step_profile.py

The gradient function of a Transformer (forward, loss and backward pass, without
the update) is compiled by XLA for one CPU, and one call is recorded by
TensorFlow's profiler. The operations of the program are sorted into kinds by
their opcode and shapes. Two of them may run at the same time, so the kinds sum
up to more than the step takes; rows hold shares of the sum.

The limit is the time that the matrix products alone would take at the peak, the
speed of one large product, which is measured in the same run. Rows are appended
to `results/step_profile.csv`.
"""

import argparse
import collections
import math
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance
from benchmarks.shared.step_flops import step_flops
from benchmarks.speed.measuring.profile_rows import (
    print_profile,
    rows_of_kinds,
)
from benchmarks.speed.measuring.training_steps import (
    CONFIGURATIONS,
    PEAK_SIZE,
    make_transformer,
    matrix_product,
    random_batch,
)

PROFILED = ("3+3x256", "4+4x128")
WARM_UP = 3
INSTRUCTION = re.compile(
    r"^\s*(?:ROOT )?%?([\w.-]+) = \(?\w+\[([\d,]*)\]\S* ([\w-]+)\((.*)"
)
OPERAND = re.compile(r"%([\w.-]+)")
MOVED = ("copy", "transpose")
REDUCED = ("reduce", "ynn")


def read_instructions(text):
    """Reads the instructions of a compiled program.

    Returns a dict from each name to `(shape, opcode, shapes of operands)`. A
    fusion that XLA runs as one matrix product has the opcode `dot`.
    """
    shapes, instructions = {}, {}
    for line in text.splitlines():
        match = INSTRUCTION.match(line)
        if not match:
            continue
        name, shape, opcode, rest = match.groups()
        shapes[name] = tuple(int(n) for n in shape.split(",") if n)
        arguments = rest.split("), ")[0]
        operands = [
            shapes[operand]
            for operand in OPERAND.findall(arguments)
            if operand in shapes
        ]
        if opcode == "fusion" and ("Einsum" in name or "MatMul" in name):
            opcode = "dot"
        instructions[name] = shapes[name], opcode, operands
    return instructions


def kind_of(name, shape, opcode, operands, sizes):
    """Returns the kind of an operation, from its shapes.

    `sizes` is an entry of `CONFIGURATIONS`.
    """
    vocabulary = sizes["vocabulary_size"]
    positions = sizes["batch_size"] * sizes["length"]
    has_vocabulary = any(vocabulary in s for s in (shape, *operands))
    if opcode == "dot":
        if has_vocabulary:
            return "matrix products: output matrix"
        if len(shape) > 3:
            return "matrix products: attention"
        return "matrix products: projections, feed-forward"
    if shape == (vocabulary, sizes["hidden_dim"]):
        return "embedding"
    if has_vocabulary:
        return "loss over the vocabulary"
    if name.startswith(MOVED):
        return "transposed copies"
    if any(word in name for word in REDUCED):
        is_sum_over_positions = math.prod(shape) < positions
        if is_sum_over_positions:
            return "sums over positions: gradients of biases, normalization"
        return "sums in rows: normalization, softmax"
    return "element-wise: dropout, activations, residuals"


def milliseconds_by_kind(events, instructions, sizes):
    """Sums the milliseconds of recorded events by kind.

    `events` are `(name, milliseconds)` of operations; others are left out.
    """
    total = collections.Counter()
    for name, milliseconds in events:
        if name in instructions:
            total[kind_of(name, *instructions[name], sizes)] += milliseconds
    return dict(total.most_common())


def record(call, folder):
    """Records a call with TensorFlow's profiler; returns its events."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
    tf.profiler.experimental.start(str(folder), options=options)
    call()
    tf.profiler.experimental.stop()
    space = xplane_pb2.XSpace()
    (file,) = Path(folder).rglob("*.xplane.pb")
    space.ParseFromString(file.read_bytes())
    return [
        (plane.event_metadata[event.metadata_id].name, event.duration_ps / 1e9)
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    ]


def median_seconds(call, rounds):
    """Returns the median seconds of a call."""
    seconds = []
    for _ in range(WARM_UP + rounds):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[WARM_UP:])


def gradient_function(sizes):
    """Returns the compiled gradient function of a model, and its arguments."""
    import keras
    import tensorflow as tf

    model = make_transformer(sizes)
    model.compile(keras.optimizers.Adam(1e-4))
    source, target, labels = map(tf.constant, random_batch(sizes))
    tokens = tf.constant(float(labels.shape.num_elements()))
    function = tf.function(
        model._sum_and_gradients, jit_compile=True, autograph=False
    )
    inputs = {"source_ids": source, "target_ids": target}
    return function, (inputs, labels, {"source": tokens, "target": tokens})


def profile(name, rounds):
    """Profiles one configuration; returns its rows."""
    sizes = CONFIGURATIONS[name]
    gradients, arguments = gradient_function(sizes)

    def call():
        return float(gradients(*arguments)[0])

    seconds = median_seconds(call, rounds)
    peak = 2 * PEAK_SIZE**3 / median_seconds(matrix_product(), rounds)
    text = gradients.experimental_get_compiler_ir(*arguments)(
        stage="optimized_hlo"
    )
    with tempfile.TemporaryDirectory() as folder:
        events = record(call, folder)
    kinds = milliseconds_by_kind(events, read_instructions(text), sizes)
    columns = {
        **provenance("tensorflow", "keras"),
        "model": name,
        **sizes,
        "rounds": rounds,
        "step_ms_median": round(seconds * 1e3, 1),
        "peak_gflops": round(peak / 1e9, 1),
        "limit_ms": round(step_flops(sizes) / peak * 1e3, 1),
    }
    return rows_of_kinds(columns, kinds)


def main():
    """Profiles the configurations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CONFIGURATIONS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "step_profile.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for name in [options.only] if options.only else PROFILED:
        rows = profile(name, options.rounds)
        append_rows(options.output, rows)
        print_profile(name, rows, "step_ms_median")


if __name__ == "__main__":
    main()
