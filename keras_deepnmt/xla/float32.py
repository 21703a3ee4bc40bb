"""Products in float32 with all their digits, also on GPUs."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def all_digits_of_float32() -> Iterator[None]:
    """Lets GPUs compute all digits of float32, as CPUs do, within the block.

    By default GPUs since Ampere round the factors of products to 10 bits
    (TensorFloat-32), by more than comparisons with another program allow.
    """
    if keras.config.backend() == "jax":
        import jax

        with jax.default_matmul_precision("float32"):
            yield
    elif keras.config.backend() == "tensorflow":
        import tensorflow as tf

        config = tf.config.experimental
        before = config.tensor_float_32_execution_enabled()
        config.enable_tensor_float_32_execution(False)
        try:
            yield
        finally:
            config.enable_tensor_float_32_execution(before)
    else:
        yield
