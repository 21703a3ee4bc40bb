"""Attention with fused kernels, compared with what `MultiHeadAttention` does.

    KERAS_BACKEND=jax python benchmarks/speed/fused_attention.py

For a machine with a GPU and JAX. A layer of self-attention, forward and
backward, is timed in three ways, in turns: as `MultiHeadAttention` computes it,
with `keras.ops.dot_product_attention` and its fused kernels, and with the same
function without them. Batches have the same number of tokens at each length;
the mask hides padding and, in a decoder, later positions. There is no dropout,
which the fused kernels of Keras do not have.

Each length gives one row in `results/fused_attention.csv`: milliseconds, and
the relative error of the output and of the gradient of the input, in the norm,
against the layer in float32.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

WAYS = ("layer", "fused", "unfused")
LENGTHS = (32, 64, 128, 256, 512, 1024)
RESULTS = Path(__file__).parent / "results" / "fused_attention.csv"


def make_layers(width, num_heads, dtype):
    """Makes one layer for each way, with the same weights.

    Returns a dict by way; `"float32"` is the layer in float32.
    """
    from keras import ops

    from keras_deepnmt.layers.multi_head_attention import MultiHeadAttention

    class KerasAttention(MultiHeadAttention):
        """Attends by `keras.ops.dot_product_attention`."""

        is_fused = False

        def _compute_logits(self, queries, keys):
            return queries, keys

        def _attend(self, logits, values, allowed, training):
            states = [ops.transpose(x, (0, 2, 1, 3)) for x in (*logits, values)]
            context = ops.dot_product_attention(
                *states, mask=allowed, flash_attention=self.is_fused
            )
            shape = ops.shape(context)
            width = self.num_heads * self.head_dim
            return ops.reshape(context, (shape[0], shape[1], width)), None

    layers = {
        "layer": MultiHeadAttention(num_heads, dtype=dtype),
        "fused": KerasAttention(num_heads, dtype=dtype),
        "unfused": KerasAttention(num_heads, dtype=dtype),
        "float32": MultiHeadAttention(num_heads, dtype="float32"),
    }
    layers["fused"].is_fused = True
    for layer in layers.values():
        layer.build((None, None, width))
        layer.set_weights(layers["layer"].get_weights())
    return layers


def make_inputs(batch_tokens, length, width, is_decoder, seed):
    """Draws states and a mask: rows are between half and all of the length."""
    import numpy as np

    random = np.random.default_rng(seed)
    rows = batch_tokens // length
    states = random.standard_normal((rows, length, width), "float32")
    lengths = random.integers(length // 2, length, rows, endpoint=True)
    positions = np.arange(length)
    mask = np.repeat(
        (positions < lengths[:, None])[:, None], length, axis=1
    )  # (B, T, S)
    if is_decoder:
        mask = mask & (positions <= positions[:, None])
    # Only real queries count: what padding computes is never used.
    is_real = (positions < lengths[:, None])[..., None].astype("float32")
    return states, mask, is_real


def compiled_pass(layer, mask, is_real):
    """Compiles the forward and backward pass of a layer.

    Returns a function from states to the output, and to the gradients of the
    states and weights.
    """
    import jax
    import jax.numpy as jnp

    # The mask is an argument: XLA would fold a constant of its size.
    def loss(states, weights, mask, is_real):
        outputs, _ = layer.stateless_call(
            weights, [], states, attention_mask=mask
        )
        outputs = outputs.astype("float32") * is_real
        return jnp.sum(outputs**2), outputs

    weights = [variable.value for variable in layer.trainable_variables]
    gradient = jax.grad(loss, argnums=(0, 1), has_aux=True)
    compiled = jax.jit(gradient)
    mask, is_real = jax.device_put((mask, is_real))

    def run(states):
        (of_states, of_weights), outputs = compiled(
            states, weights, mask, is_real
        )
        return outputs, of_states, of_weights

    return run


def median_ms(passes, states, rounds, calls):
    """Times the passes in turns; returns the median milliseconds by way."""
    import jax

    times = {way: [] for way in passes}
    for number in range(rounds):
        order = list(passes) if number % 2 else list(passes)[::-1]
        for way in order:
            start = time.perf_counter()
            for _ in range(calls):
                found = passes[way](states)
            jax.block_until_ready(found)
            times[way].append(time.perf_counter() - start)
    return {
        way: 1e3 * statistics.median(seconds) / calls
        for way, seconds in times.items()
    }


def relative_error(found, expected):
    """Returns |found - expected| / |expected|, in the Euclidean norm."""
    import numpy as np

    found, expected = (np.asarray(x, "float64") for x in (found, expected))
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def measure(length, is_decoder, options):
    """Measures one length; returns the columns of its row."""
    import jax

    states, mask, is_real = make_inputs(
        options.batch_tokens, length, options.width, is_decoder, options.seed
    )
    layers = make_layers(options.width, options.num_heads, options.dtype)
    passes = {
        name: compiled_pass(layer, mask, is_real)
        for name, layer in layers.items()
        if name != "fused" or options.fused
    }
    states = jax.device_put(states)
    found = {name: run(states)[:2] for name, run in passes.items()}
    expected = found.pop("float32")
    del passes["float32"]
    times = median_ms(passes, states, options.rounds, options.calls)
    row = {"length": length, "is_decoder": is_decoder}
    for way in WAYS:
        row[f"{way}_ms"] = round(times[way], 4) if way in times else ""
    for way in WAYS:
        for number, what in enumerate(("output", "gradient")):
            row[f"{way}_{what}_error"] = (
                f"{relative_error(found[way][number], expected[number]):.2g}"
                if way in found
                else ""
            )
    return row


def main():
    """Measures all lengths, and appends a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--batch-tokens", type=int, default=16_384)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--num-heads", type=int, default=8)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20, help="in a round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--no-fused",
        action="store_false",
        dest="fused",
        help="leave the fused kernels out, to try the script without a GPU",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    import jax
    import keras

    if keras.config.backend() != "jax":
        parser.error("KERAS_BACKEND must be jax")
    device = jax.devices()[0].device_kind
    for is_decoder in (False, True):
        for length in options.lengths:
            row = {
                **provenance("jax", "keras"),
                "device": device,
                "dtype": options.dtype,
                "width": options.width,
                "num_heads": options.num_heads,
                "batch_tokens": options.batch_tokens,
                "seed": options.seed,
                "rounds": options.rounds,
                **measure(length, is_decoder, options),
            }
            append_row(options.output, row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
