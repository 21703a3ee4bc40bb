"""The size of the largest tensor that a compiled function computes."""

import math
import re

import keras


def largest_tensor(function, *arrays):
    """Number of elements of the largest float tensor in what XLA compiles."""
    if keras.backend.backend() == "jax":
        import jax

        text = jax.jit(function).lower(*arrays).compile().as_text()
    else:
        import tensorflow as tf

        compiled = tf.function(function, jit_compile=True, autograph=False)
        specs = [tf.TensorSpec(array.shape, array.dtype) for array in arrays]
        make_text = compiled.experimental_get_compiler_ir(*specs)
        text = make_text(stage="optimized_hlo")
    shapes = re.findall(r"\bf(?:32|16)\[([\d,]+)\]", text)
    return max(math.prod(map(int, shape.split(","))) for shape in shapes)
