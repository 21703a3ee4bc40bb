"""The steps of a preparation, called by the workers of a pool."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from keras_deepnmt.bulk.ray_session import ray_session
from keras_deepnmt.bulk.worker_pool import WorkerPool


@contextlib.contextmanager
def map_by_workers(
    address: str | None, workers: int | None
) -> Iterator[Callable]:
    """Yields a `BlockMap` of the workers of a Ray session.

    `address` is as in `ray_session`, and `workers` as in `WorkerPool`; each has
    one core.
    """
    with ray_session(address, workers) as ray:
        with WorkerPool(ray, _KeptSteps, (), workers=workers) as pool:
            steps = itertools.count()
            yield functools.partial(_map_blocks, ray, pool, steps)


def _map_blocks(
    ray: Any,
    pool: WorkerPool,
    steps: Iterator[int],
    make: Callable[..., Callable],
    made_of: Sequence[Any],
    calls: Iterable[tuple],
) -> Iterator[Any]:
    # Sent to each machine once, and not with each call.
    sent = ray.put((make, tuple(made_of)))
    number = next(steps)
    yield from pool.results((number, sent, *call) for call in calls)


class _KeptSteps:
    """Makes a step when it is first called, in the process of a worker."""

    def __init__(self):
        self._number, self._step = None, None

    def __call__(self, number, made_of, *arguments):
        if number != self._number:
            make, parts = made_of
            self._number, self._step = number, make(*parts)
        return self._step(*arguments)
