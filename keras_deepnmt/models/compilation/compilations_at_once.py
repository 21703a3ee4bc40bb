"""How many batch shapes are compiled at a time."""

from pathlib import Path

_GIBIBYTE = 2**30


def num_compilations_at_once(
    num_shapes: int, step_bytes: int, num_threads: int
) -> int:
    """Returns how many shapes to compile at a time; 0 for none ahead.

    As many as there are threads, if the memory suffices.

    Args:
        num_shapes: number of shapes that will come.
        step_bytes: estimated memory that each compilation needs, beside that of
            the compiler.
        num_threads: most compilations at a time.

    Example:
    >>> num_compilations_at_once(1, 10**6, num_threads=8)
    0
    """
    # The compiler itself takes memory, too, and the estimate may be low.
    free_bytes = _free_bytes() - _GIBIBYTE
    at_once = min(
        num_shapes,
        num_threads,
        max(0, free_bytes) // (2 * step_bytes + _GIBIBYTE),
    )
    # One thread would compile what the step needs first, in its place.
    return at_once if at_once > 1 else 0


def _free_bytes():
    """Returns the memory that is free on Linux, 0 elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").split("\n")
        sizes = dict(line.split(":") for line in lines if ":" in line)
        free = int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 0
    group = Path("/sys/fs/cgroup")
    try:
        most, used = (
            int((group / f"memory.{name}").read_text(encoding="utf-8"))
            for name in ("max", "current")
        )
    except (OSError, ValueError):  # no limit
        return free
    return min(free, most - used)
