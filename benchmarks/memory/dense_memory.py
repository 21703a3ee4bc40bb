"""Memory a token of the training step, for residual and dense stacks.

    python benchmarks/memory/dense_memory.py

A dense layer reads everything below it, so what a training step keeps for its
backward pass may grow with the square of the depth, unless summaries let the
stack forget. Models of width 256 that grow by 128, with as many layers in the
encoder as in the decoder, are compiled for a large batch and never run: the
forward pass with dropout, the loss, and the gradients of all weights, which is
what the training step of a replica compiles. What XLA then reserves as scratch
(not arguments, weights and gradients) over the target tokens of the batch goes
to `results/dense_memory.csv`, a row a stack and depth; in every row of a stack
are the exponent e of `c depth^e` and the terms of `a + b depth + c depth^2`,
fitted to all its depths. The weights' share of the scratch (normalised kernels)
does not grow with the batch, which is why the batch is large.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.memory.measuring.depth_fit import growth_exponent, growth_terms
from benchmarks.shared.compiled_programs import CompiledPrograms
from benchmarks.shared.result_rows import append_rows, origin

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


def compile_step(options, num_layers, size):
    """Compiles forward and backward pass of a model; runs nothing.

    Args:
        options: dict of arguments of `models.ConvSeq2Seq`.
        num_layers: int. Of each stack.
        size: one of `SIZES`.

    Returns:
        Int, the number of parameters.
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

    def gradients(source_ids, target_ids, labels):
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        with tf.GradientTape() as tape:
            scores = model(inputs, training=True)
            loss, tokens = model.sum_token_losses(labels, scores, True)
            loss = loss / tokens
        found = tape.gradient(loss, model.trainable_variables)
        # An embedding's are sparse.
        return loss, [tf.convert_to_tensor(each) for each in found]

    step = tf.function(gradients, jit_compile=True, autograph=False)
    shape = (size["batch_size"], size["length"])
    ids = [tf.TensorSpec(shape, tf.int32)] * 3
    step.experimental_get_compiler_ir(*ids)(stage="optimized_hlo")
    return model.count_params()


def measure(name, size, programs):
    """Compiles one stack at all depths; gives its rows.

    Args:
        name: one of `STACKS`.
        size: one of `SIZES`.
        programs: `CompiledPrograms`.
    """
    import keras

    tokens = size["batch_size"] * size["length"]
    rows = []
    for num_layers in size["depths"]:
        start = time.monotonic()
        programs.take()  # what was compiled before
        parameters = compile_step(STACKS[name], num_layers, size)
        scratch = programs.take()["scratch_bytes"]
        assert scratch
        rows.append(
            {
                **origin("tensorflow", "keras"),
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
            f"{rows[-1]['kib_per_token']} KiB a token "
            f"({time.monotonic() - start:.0f} s)",
            flush=True,
        )
        keras.backend.clear_session()
    add_fits(rows)
    last = rows[-1]
    print(
        f"{name}: exponent {last['exponent']}; {last['fit_constant']} "
        f"+ {last['fit_linear']} L + {last['fit_quadratic']} L^2 KiB a token"
    )
    return rows


def add_fits(rows):
    """Puts into the rows of one stack how its memory grows.

    Args:
        rows: list of dicts with `layers` and `kib_per_token`.
    """
    depths, values = (
        [row[name] for row in rows] for name in ("layers", "kib_per_token")
    )
    exponent = round(growth_exponent(depths, values), 3)
    names = ("fit_constant", "fit_linear", "fit_quadratic")
    # Plus zero: none is a negative zero.
    terms = [round(term, 3) + 0.0 for term in growth_terms(depths, values)]
    for row in rows:
        row["exponent"] = exponent
        row |= dict(zip(names, terms, strict=True))


def main():
    """Compiles every stack at every depth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=STACKS, help="one stack")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "dense_memory.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        programs = CompiledPrograms(folder)
        for name in [options.only] if options.only else STACKS:
            rows = measure(name, SIZES[options.size], programs)
            append_rows(options.output, rows)


if __name__ == "__main__":
    main()
