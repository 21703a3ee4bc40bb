"""Calls a function in many processes, with the results in order.

Ray's actors do this, not Ray Data. Its blocks follow from sizes in bytes, and
its tasks are tried again without saying so; here

* what is computed together must not depend on the number of workers, so that
  results are the same bytes: a block has fixed lines
* results are written while later ones are computed, a file of them is finished
  when its last one is there, and reading begins in the middle of a file
* a block whose worker ends is given to another one, and a machine that comes
  back, or is new, is used; but not for ever if the block itself ends workers
* an error of a worker is the error of the command, in one line
"""

import collections
import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from keras_deepnmt.errors import UserError

_logger = logging.getLogger(__name__)

# Of a worker: the next one is there when it has finished one.
_TASKS_AT_ONCE = 2
# Results that wait for an earlier one, for each worker.
_MOST_WAITING = 6
# So many workers may end while they have the same task.
_MOST_LOSSES = 6
_REMEDY = (
    "If there is not enough memory, use fewer `--workers` or a smaller "
    "`--batch-size`."
)


class WorkerPool:
    """Workers, each of which makes a function and then calls it.

    A worker that ends is replaced, and what it had not finished is given to
    the others. `ray` is what `ray_session` yields.

    `make(*arguments)` runs in a worker, which must be able to import `make`,
    and returns the function to call; its arguments and results must be such
    that they can be pickled. Without `workers` there are as many as there is
    room for. Each has `cores` processors and `gpus` GPUs, or a share of one.

    Attributes:
        num_workers: how many workers there are at most.
        num_unused_gpus: how many GPUs there are, if workers use none.
    """

    def __init__(
        self,
        ray: Any,
        make: Callable[..., Callable],
        arguments: Sequence[Any],
        *,
        workers: int | None = None,
        cores: int = 1,
        gpus: float = 0.0,
    ):
        self._ray = ray
        self.num_workers = workers or _room(ray, cores, gpus)
        found = ray.cluster_resources()
        self.num_unused_gpus = 0 if gpus else int(found.get("GPU", 0))
        self._kind = ray.remote(
            num_cpus=cores, num_gpus=gpus, max_restarts=0, max_task_retries=0
        )(_Worker)
        self._made_of = (make, tuple(arguments))
        self._starting: dict[Any, Any] = {}  # workers by what they return
        self._workers: dict[Any, set] = {}  # what each of them computes
        self._tasks: dict[Any, tuple[Any, int]] = {}
        self._losses_in_a_row = 0

    def __enter__(self) -> "WorkerPool":
        for _ in range(self.num_workers):
            self._start_worker()
        return self

    def __exit__(self, *error) -> None:
        for worker in [*self._starting.values(), *self._workers]:
            self._ray.kill(worker)

    def results(self, calls: Iterable[tuple]) -> Iterator[Any]:
        """Yields the result of each call, in their order.

        Calls, each a tuple of arguments, are taken from the iterator as far as
        there are workers for them. A `UserError` that a worker has raised is
        raised here; it is also raised if one task ends its worker again and
        again, or no worker can start.
        """
        calls = iter(calls)
        waiting: list[int] = []  # numbers of calls, those to repeat included
        begun: dict[int, tuple] = {}  # arguments of calls without a result
        done: dict[int, Any] = {}
        losses: collections.Counter = collections.Counter()
        number = taken = 0
        is_over = False
        while True:
            while number in done:
                yield done.pop(number)
                number += 1
            for worker in self._with_room():
                if not waiting and not is_over:
                    most = _MOST_WAITING * self.num_workers
                    if taken - number >= most:
                        break
                    call = next(calls, None)
                    if call is None:
                        is_over = True
                    else:
                        begun[taken] = call
                        waiting.append(taken)
                        taken += 1
                if not waiting:
                    break
                self._send(worker, heapq.heappop(waiting), begun)
            if is_over and number == taken:
                return
            for found, result in self._wait():
                if result is _LOST:
                    losses[found] += 1
                    self._check_losses(losses[found])
                    heapq.heappush(waiting, found)
                else:
                    del begun[found]
                    done[found] = result

    def _with_room(self):
        """Yields workers, that with the fewest tasks first, as long as any."""
        while self._workers:
            worker = min(self._workers, key=lambda w: len(self._workers[w]))
            if len(self._workers[worker]) >= _TASKS_AT_ONCE:
                return
            yield worker

    def _start_worker(self):
        worker = self._kind.remote()
        make, arguments = self._made_of
        self._starting[worker.start.remote(make, arguments)] = worker

    def _send(self, worker, number, begun):
        task = worker.call.remote(*begun[number])
        self._tasks[task] = (worker, number)
        self._workers[worker].add(task)

    def _wait(self):
        """Waits for workers; yields the numbers and results of calls."""
        ready, _ = self._ray.wait(
            [*self._tasks, *self._starting], num_returns=1
        )
        for future in ready:
            if future in self._starting:
                worker = self._starting.pop(future)
                if self._result(future) is _LOST:
                    self._start_worker()
                    self._check_losses()
                else:
                    self._workers[worker] = set()
                continue
            if future not in self._tasks:  # of a worker that was lost
                continue
            worker, number = self._tasks.pop(future)
            result = self._result(future)
            if result is not _LOST:
                self._workers[worker].discard(future)
                self._losses_in_a_row = 0
                yield number, result
                continue
            yield number, _LOST
            for other in self._workers.pop(worker) - {future}:
                yield self._tasks.pop(other)[1], _LOST
            # It may live, where the network or one result was lost.
            self._ray.kill(worker)
            self._start_worker()

    def _result(self, future):
        errors = self._ray.exceptions
        try:
            return self._ray.get(future)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause or error) from None
        except errors.RayError as error:
            self._losses_in_a_row += 1
            self._reason = " ".join(str(error).split())
            _logger.debug("A worker was lost: %s", self._reason)
            return _LOST

    def _check_losses(self, of_task=0):
        if of_task > _MOST_LOSSES:
            raise UserError(
                f"{of_task} workers have ended while they had the same lines. "
                f"{_REMEDY} The last one: {self._reason}"
            )
        if self._losses_in_a_row > 3 * (self.num_workers + _MOST_LOSSES):
            raise UserError(
                f"{self._losses_in_a_row} workers have ended one after the "
                f"other without a result. {_REMEDY} The last one: "
                f"{self._reason}"
            )


_LOST = object()


class _Worker:
    """The process of a worker."""

    def __init__(self):
        self._function = None

    def start(self, make, arguments):
        self._function = make(*arguments)

    def call(self, *arguments):
        return self._function(*arguments)


def _room(ray, cores, gpus):
    """How many workers the machines have room for."""
    found = ray.cluster_resources()
    number = int(found.get("CPU", 0) // cores)
    if gpus:
        number = min(number, int(found.get("GPU", 0) / gpus + 1e-9))
    if not number:
        raise UserError(
            f"A worker needs {cores} processors and {gpus:g} GPUs (see "
            "`--cores-per-worker` and `--gpus-per-worker`). Received: "
            f"{found.get('CPU', 0):g} processors and {found.get('GPU', 0):g} "
            "GPUs. Give `--workers` to wait for more machines."
        )
    return number
