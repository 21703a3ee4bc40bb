"""How the steps of `prepare` that see one block at a time are called.

A `BlockMap` is given a function or class that makes a step, what it is made of,
and the arguments of each call; it yields the results in the order of the calls.
It decides where that happens: in this thread, in several, or on other machines.
What must see all pairs, such as which of them occur again, is no such step.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from keras_deepnmt.threads import num_cores, results_in_order

BlockMap = Callable[
    [Callable[..., Callable], Sequence[Any], Iterable[tuple]], Iterator[Any]
]


def map_here(
    make: Callable[..., Callable],
    made_of: Sequence[Any],
    calls: Iterable[tuple],
) -> Iterator[Any]:
    """A `BlockMap` of this thread.

    Example:
    >>> def make_adder(number):
    ...     return lambda other: number + other
    >>> list(map_here(make_adder, (2,), [(3,), (4,)]))
    [5, 6]
    """
    step = make(*made_of)
    return (step(*arguments) for arguments in calls)


def map_in_threads(
    make: Callable[..., Callable],
    made_of: Sequence[Any],
    calls: Iterable[tuple],
) -> Iterator[Any]:
    """A `BlockMap` of a thread for each core, for steps that release the GIL.

    Example:
    >>> list(map_in_threads(lambda: abs, (), [(-3,), (-4,)]))
    [3, 4]
    """
    step = make(*made_of)
    return results_in_order(
        (partial(step, *arguments) for arguments in calls), num_cores()
    )
