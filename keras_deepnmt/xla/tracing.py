"""Tells code that is being traced whether XLA will compile it.

XLA needs static shapes and can write slices of an array in place; a plain
TensorFlow graph, such as an exported model, has no such operation.
"""

import contextlib
import contextvars

import keras

_xla_compiles = contextvars.ContextVar("xla_compiles", default=False)


@contextlib.contextmanager
def compiled_by_xla():
    """Says that XLA compiles the code traced in the block.

    Example:
    >>> with compiled_by_xla():
    ...     is_compiled_by_xla()
    True
    """
    token = _xla_compiles.set(True)
    try:
        yield
    finally:
        _xla_compiles.reset(token)


def is_compiled_by_xla():
    """Whether the code being traced is compiled with static shapes.

    On JAX it always is.
    """
    return keras.backend.backend() == "jax" or _xla_compiles.get()
