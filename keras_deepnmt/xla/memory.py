"""Keeps memory that was freed, for the next step."""

import ctypes
import os
import platform

# Parameters of `mallopt`, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8


def keep_freed_memory() -> bool:
    """Makes this process keep the memory that it frees.

    A compiled training step takes hundreds of megabytes and frees them, in each
    update. The C library of Linux, glibc, returns such large blocks to the
    system, which fills them with zeros, page by page, before it hands them out
    again. `benchmarks/speed/README.md` has the cost on a CPU.
    After this call freed memory stays with the process, so that its size never
    falls. Call it before the first TensorFlow or JAX operation; the command
    `deepnmt` does.

    Nothing is changed without glibc, or where an environment variable of glibc,
    such as `MALLOC_TRIM_THRESHOLD_`, chooses something else.

    Returns:
        Whether freed memory is kept by this call.

    Example:
    >>> is_kept = keras_deepnmt.training.keep_freed_memory()
    """
    if platform.libc_ver()[0] != "glibc" or _is_chosen(os.environ):
        return False
    library = ctypes.CDLL(None)
    # No separate block for a large array, no end of the heap is given back, and
    # one heap: those of other threads are small and given back in any case.
    return all(
        library.mallopt(parameter, value) == 1
        for parameter, value in (
            (_MMAP_MAX, 0),
            (_TRIM_THRESHOLD, -1),
            (_ARENA_MAX, 1),
        )
    )


def _is_chosen(environment):
    """Whether the environment has a setting of glibc's allocator."""
    return "glibc.malloc" in environment.get("GLIBC_TUNABLES", "") or any(
        name.startswith("MALLOC_") for name in environment
    )
