"""Results come in order and once, whatever happens to workers.

Ray is replaced by objects that finish tasks, and lose workers, in any order.
`tests/cli/test_translate_files_by_ray.py` does the same with processes.
"""

import collections
import random
from types import SimpleNamespace

import pytest

from keras_deepnmt.bulk.worker_pool import WorkerPool
from keras_deepnmt.errors import UserError


class RayError(Exception):
    """A worker was lost."""


class RayTaskError(RayError):
    """A worker has raised an error."""

    def __init__(self, cause):
        super().__init__(cause)
        self.cause = cause


class Worker:
    """The attributes are those of an actor."""

    is_alive = True


class StandIn:
    """What a pool uses of Ray, in this process.

    Args:
        seed: of the order in which tasks are finished.
        is_lost: whether a worker ends now, given the arguments of its task.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, seed, is_lost=lambda arguments: False, cpus=3):
        self.draw = random.Random(seed)
        self.is_lost = is_lost
        self.cpus = cpus
        self.calls = collections.Counter()
        self.most_at_once = self.started = self.killed = 0
        self.tasks = {}

    def cluster_resources(self):
        return {"CPU": self.cpus}

    def remote(self, **options):
        return lambda kind: SimpleNamespace(remote=lambda: self._start(kind))

    def _start(self, kind):
        self.started += 1
        worker = Worker()
        of_kind = kind()
        for name in ("start", "call"):
            setattr(
                worker,
                name,
                SimpleNamespace(
                    remote=lambda *a, name=name: self._task(
                        worker, getattr(of_kind, name), a
                    )
                ),
            )
        return worker

    def _task(self, worker, function, arguments):
        task = object()
        self.tasks[task] = (worker, function, arguments)
        self.most_at_once = max(self.most_at_once, len(self.tasks))
        return task

    def wait(self, tasks, num_returns):
        assert tasks
        return [self.draw.choice(tasks)], []

    def get(self, task):
        worker, function, arguments = self.tasks.pop(task)
        if not worker.is_alive or self.is_lost(arguments):
            worker.is_alive = False
            raise RayError("The worker died.")
        self.calls[arguments] += 1
        try:
            return function(*arguments)
        except Exception as error:
            raise RayTaskError(error) from error

    def kill(self, worker):
        self.killed += 1
        worker.is_alive = False


def make_double(most=10**9):
    def double(number):
        if number > most:
            raise UserError(f"{number}: too large.")
        return 2 * number

    return double


def results(ray, numbers=range(50), arguments=(), **options):
    with WorkerPool(ray, make_double, arguments, **options) as pool:
        yield from pool.results((number,) for number in numbers)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_are_in_order(workers):
    ray = StandIn(seed=0)
    found = list(results(ray, workers=workers))
    assert found == [2 * number for number in range(50)]
    assert ray.started == ray.killed == workers


def test_calls_are_made_as_they_are_needed():
    taken = []

    def numbers():
        for number in range(1000):
            taken.append(number)
            yield number

    found = results(StandIn(seed=1), numbers())
    assert next(found) == 0
    assert len(taken) < 30


@pytest.mark.parametrize("seed", range(20))
def test_no_result_is_lost_or_twice_when_workers_end(seed):
    draw = random.Random(seed)
    ray = StandIn(seed, lambda arguments: draw.random() < 0.1)
    assert list(results(ray)) == [2 * number for number in range(50)]
    assert ray.started > 3


def test_what_ends_every_worker_is_refused():
    ray = StandIn(0, lambda arguments: arguments == (7,))
    found = []
    with pytest.raises(UserError, match="7 workers have ended while they had"):
        found.extend(results(ray))
    assert found == [2 * number for number in range(7)][: len(found)]


def test_workers_that_cannot_start_are_refused():
    ray = StandIn(0, lambda arguments: True)
    with pytest.raises(UserError, match="without a result.*The worker died"):
        list(results(ray))
    assert ray.started < 50


def test_an_error_of_a_worker_is_that_of_the_command():
    with pytest.raises(UserError, match="^31: too large.$"):
        list(results(StandIn(0), arguments=(30,)))


def test_there_is_a_worker_for_each_processor():
    ray = StandIn(0, cpus=7)
    list(results(ray, cores=2))
    assert ray.started == 3
    with pytest.raises(UserError, match="needs 8 processors.*Received: 7"):
        list(results(ray, cores=8))
