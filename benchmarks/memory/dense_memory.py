"""Memory per token of a training step, for residual and dense stacks.

    python benchmarks/memory/dense_memory.py

A dense layer reads the outputs of all layers below it, so that the memory which
a training step keeps for its backward pass may grow with the square of the
depth, unless summary layers replace those outputs. Models of width 256 that
grow by 128 per layer, with equally many layers in encoder and decoder, are
compiled for a large batch and never run: the forward pass with dropout, the
loss, and the gradients of all weights, which is what a replica's training step
compiles. The scratch space that XLA reserves (without arguments, weights and
gradients), divided by the target tokens of the batch, is appended to
`results/dense_memory.csv`, one row per stack and depth. Every row of a stack
also has the exponent e of `c depth^e` and the terms of `a + b depth + c
depth^2`, fitted to all its depths. A part of the scratch space holds normalized
kernels and does not grow with the batch; the batch is large so that this part
matters little.
"""

import argparse
import math
import os
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance

DENSE = dict(encoder_connection="dense", decoder_connection="dense")
STACKS = {
    "residual": {},
    "dense": DENSE,
    "dense, summary every 6": {**DENSE, "summary_length": 6},
}
SIZES = {
    "full": dict(
        depths=(4, 8, 12, 16),
        hidden_dim=256,
        growth_dim=128,
        vocabulary_size=64,
        batch_size=512,
        length=32,
    ),
    "smoke": dict(
        depths=(1, 2, 3),
        hidden_dim=8,
        growth_dim=4,
        vocabulary_size=8,
        batch_size=512,
        length=8,
    ),
}
DROPOUT = 0.2
SCRATCH = re.compile(r"^allocation \d+: size (\d+), preallocated-temp", re.M)


def compile_step(options, num_layers, size):
    """Compiles forward and backward pass of a model, without running them.

    `options` are arguments of `models.ConvSeq2Seq`. Returns the number of
    parameters.
    """
    import tensorflow as tf

    from keras_deepnmt.losses import LabelSmoothedCrossEntropy
    from keras_deepnmt.models import ConvSeq2Seq

    model = ConvSeq2Seq(
        *[size["vocabulary_size"]] * 2,
        size["hidden_dim"],
        num_layers,
        num_layers,
        growth_dim=size["growth_dim"],
        dropout=DROPOUT,
        **options,
    )
    model.compile("sgd", loss=LabelSmoothedCrossEntropy(0.0))

    def loss_and_gradients(source_ids, target_ids, labels):
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        with tf.GradientTape() as tape:
            scores = model(inputs, training=True)
            loss, tokens = model.sum_token_losses(labels, scores, True)
            loss = loss / tokens
        gradients = tape.gradient(loss, model.trainable_variables)
        # Gradients of embeddings are sparse.
        return loss, [tf.convert_to_tensor(each) for each in gradients]

    step = tf.function(loss_and_gradients, jit_compile=True, autograph=False)
    shape = (size["batch_size"], size["length"])
    ids = [tf.TensorSpec(shape, tf.int32)] * 3
    step.experimental_get_compiler_ir(*ids)(stage="optimized_hlo")
    return model.count_params()


def dump_programs(folder):
    """Makes XLA write what it plans for each program into a folder.

    To be called before TensorFlow starts: XLA reads its flags only once.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    flags += f" --xla_dump_to={folder} --xla_dump_hlo_as_text"
    os.environ["XLA_FLAGS"] = flags.strip()


def largest_scratch_space(folder):
    """Returns the bytes of the program that needs most; empties the folder."""
    sizes = [0]
    for file in Path(folder).iterdir():
        if file.name.endswith("buffer-assignment.txt"):
            sizes.append(sum(map(int, SCRATCH.findall(file.read_text()))))
        file.unlink()
    return max(sizes)


def growth_exponent(depths, values):
    """Fits `value = c depth^e`; returns e.

    It is the slope of a line through the logarithms, so all numbers must be
    above zero. A constant part in the values makes e smaller, even below 1.
    """
    import numpy as np

    slope, _ = np.polyfit(np.log(depths), np.log(values), 1)
    return float(slope)


def growth_terms(depths, values):
    """Fits `value = constant + linear depth + quadratic depth^2`.

    Returns the three coefficients; all are `nan` for fewer than three different
    depths.
    """
    import numpy as np

    if len(set(depths)) < 3:
        return (math.nan,) * 3
    quadratic, linear, constant = np.polyfit(depths, values, 2)
    return float(constant), float(linear), float(quadratic)


def measure(name, size, folder):
    """Compiles one stack at all depths; returns its rows."""
    import keras

    tokens = size["batch_size"] * size["length"]
    rows = []
    for num_layers in size["depths"]:
        start = time.monotonic()
        largest_scratch_space(folder)  # discards programs compiled before
        parameters = compile_step(STACKS[name], num_layers, size)
        scratch = largest_scratch_space(folder)
        assert scratch
        rows.append(
            {
                **provenance("tensorflow", "keras"),
                "stack": name,
                "layers": num_layers,
                **{key: size[key] for key in size if key != "depths"},
                "dropout": DROPOUT,
                "dtype": "float32",
                "parameters": parameters,
                "scratch_bytes": scratch,
                "kib_per_token": round(scratch / tokens / 2**10, 2),
            }
        )
        print(
            f"{name}, {num_layers} + {num_layers} layers: "
            f"{rows[-1]['kib_per_token']} KiB per token "
            f"({time.monotonic() - start:.0f} s)",
            flush=True,
        )
        keras.backend.clear_session()
    add_fits(rows)
    last = rows[-1]
    print(
        f"{name}: exponent {last['exponent']}; {last['fit_constant']} "
        f"+ {last['fit_linear']} L + {last['fit_quadratic']} L^2 KiB per token"
    )
    return rows


def add_fits(rows):
    """Adds the fitted growth of the memory to all rows of one stack."""
    depths, values = (
        [row[name] for row in rows] for name in ("layers", "kib_per_token")
    )
    exponent = round(growth_exponent(depths, values), 3)
    names = ("fit_constant", "fit_linear", "fit_quadratic")
    # Adding 0.0 turns -0.0 into 0.0.
    terms = [round(term, 3) + 0.0 for term in growth_terms(depths, values)]
    for row in rows:
        row["exponent"] = exponent
        row |= dict(zip(names, terms, strict=True))


def main():
    """Compiles every stack at every depth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=STACKS, help="measure one stack only")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "dense_memory.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        dump_programs(folder)
        for name in [options.only] if options.only else STACKS:
            rows = measure(name, SIZES[options.size], folder)
            append_rows(options.output, rows)


if __name__ == "__main__":
    main()
