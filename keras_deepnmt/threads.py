"""Calls functions in several threads, with the results in order."""

import collections
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


# Cores of this process, if it is one of several that share a machine.
_share: int | None = None


def num_cores() -> int:
    """Returns the number of cores that this process may use."""
    if _share is not None:
        return _share
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def use_cores(number: int | None) -> None:
    """Sets what `num_cores` returns; `None` for all cores.

    For one of several processes that share a machine: what is computed at once
    then depends on its share alone, and not on the machine.
    """
    global _share
    _share = number


def results_in_order(
    calls: Iterable[Callable[[], T]], at_once: int
) -> Iterator[T]:
    """Yields the results of functions without arguments, in their order.

    The functions are called in `at_once` threads. They come from an iterator,
    which is run in the thread of the caller and only as far as needed: at most
    `at_once` results wait to be taken. With `at_once=1` the functions are
    called in that thread, too. When one raises an error, the later ones that
    have not begun are not called.
    """
    if at_once == 1:
        for call in calls:
            yield call()
        return
    waiting = collections.deque()
    with ThreadPoolExecutor(at_once) as threads:
        try:
            for call in calls:
                waiting.append(threads.submit(call))
                if len(waiting) > at_once:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
