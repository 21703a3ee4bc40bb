"""Compiles a training step of JAX for several batches at a time."""

import logging
from concurrent.futures import ThreadPoolExecutor

_logger = logging.getLogger(__name__)


def compile_step(step, state, batches, at_once):
    """Compiles a step for several batches before it is called for them.

    The step is traced for one batch after another, and what was traced is
    compiled in threads. `jax.jit(step, donate_argnums=0)` then finds what was
    compiled, as long as the result of this function exists: JAX keeps it for
    each function, sizes and types of arguments. After a failure, which is only
    logged for debugging, `jax.jit` compiles the step when it is called.

    Args:
        step: the function of a state and a batch that Keras compiles. The
            memory of the old state is used for the new one.
        state: nest of arrays. Only their sizes and types are read.
        batches: nests of `jax.ShapeDtypeStruct`, in the order of compilation.
        at_once: int. Number of compilations at a time.

    Returns:
        The objects that keep what was compiled.

    Example:
    >>> import jax
    >>> import jax.numpy as jnp
    >>> traced = []
    >>> def add_up(state, batch):
    ...     traced.append(batch.shape)
    ...     return state + batch.sum()
    >>> batches = [jax.ShapeDtypeStruct((n,), "float32") for n in (3, 5)]
    >>> ahead = compile_step(add_up, jnp.zeros(()), batches, at_once=2)
    >>> jitted = jax.jit(add_up, donate_argnums=0)
    >>> float(jitted(jnp.zeros(()), jnp.ones(5)))
    5.0
    >>> traced
    [(3,), (5,)]
    """
    import jax

    # Without this function object JAX would forget what was compiled.
    jitted, compiled = jax.jit(step, donate_argnums=0), []
    state = jax.tree.map(_size_and_type, state)
    threads = ThreadPoolExecutor(at_once, "compilation ahead")
    try:
        waiting = [
            threads.submit(jitted.lower(state, batch).compile)
            for batch in batches
        ]
        compiled += [one.result() for one in waiting]
    except Exception:
        _logger.debug("a compilation ahead failed", exc_info=True)
    finally:
        # After an interrupt nobody waits for those that have begun.
        threads.shutdown(wait=False, cancel_futures=True)
    return jitted, compiled


def _size_and_type(value):
    """Returns what stands for an array while its function is traced."""
    import jax

    return jax.ShapeDtypeStruct(
        value.shape, value.dtype, weak_type=getattr(value, "weak_type", False)
    )
