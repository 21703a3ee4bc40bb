"""Collects sentences of many requests into batches for one model.

It knows neither models nor web servers: a function computes batches, in the
threads that this queue has.
"""

import bisect
import collections
import itertools
import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any, NamedTuple

# How much the newest batch counts in the mean of the sentences per second.
_NEWEST = 0.2
_LONGEST_RETRY_S = 60
# The sentences of a batch are chosen among so many times as many, the first of
# all that wait: more have more similar lengths, fewer wait less.
_CHOICE = 4
# How many times as long as the shortest sentence of a batch its longest one may
# be, and the length up to which all count as equally long.
_LONGEST_TO_SHORTEST, _SHORT = 4, 8


class QueueFullError(Exception):
    """Raised where a queue has no room for a request.

    There may be room after `retry_after_s` whole seconds.
    """

    def __init__(self, retry_after_s: int):
        super().__init__(f"no room; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class QueueClosedError(Exception):
    """Raised where a queue takes no requests any more."""


class Job:
    """The sentences of one request, in a queue.

    Attributes:
        future: the results, in the order of the sentences; or `TimeoutError` if
            the time was over before all were computed, `CancelledError`, or
            what the function of the batches raised.
        queued_s: seconds until its first sentence was computed; `None` before.
    """

    def __init__(self, items, kind, start, deadline):
        self.future: Future = Future()
        self.queued_s: float | None = None
        self._kind, self._start, self._deadline = kind, start, deadline
        self._results = [None] * len(items)
        self._num_missing = len(items)
        self._num_waiting = len(items)


class _Entry(NamedTuple):
    """A sentence that waits: its turn, request and place, and its tokens."""

    order: tuple[int, int, int]
    length: int
    job: Job
    item: Any


class BatchQueue:
    """Computes the sentences of many requests in batches.

    A batch has the sentence whose turn it is, and those of its kind that are
    next to it in length, of at most four times the tokens of the shortest one.
    It is computed as soon as it can be full, or when the sentence has waited
    for `wait_s`; while the model computes, the next batch fills. With several
    threads, those that have nothing to compute divide what waits.

    Requests take turns. In each turn a request has as many sentences as a
    batch, so that one sentence does not wait for all of a large request, and a
    turn comes after a known number of batches, however many requests come
    later.

    Args:
        compute: function that takes a kind and a list of sentences, and returns
            as many results. A batch that it fails for is computed again for
            each request alone, so that only the request with the fault fails.
        batch_size: largest number of sentences of a batch.
        max_waiting: largest number of sentences that wait.
        num_threads: number of threads that call `compute`.
        wait_s: seconds for which a batch waits for more sentences.
        prepare: function that is called first, such as a warm-up. It takes a
            function that says whether the queue was closed, and may end early
            then.
        name: name of the threads.
        on_batch: function that is called after each batch, with its kind, the
            number of sentences, and the seconds that it took.

    Attributes:
        ready: a `Future` that is done when `prepare` is.
    """

    def __init__(
        self,
        compute: Callable[[Hashable, list], Sequence],
        *,
        batch_size: int = 32,
        max_waiting: int = 4096,
        num_threads: int = 1,
        wait_s: float = 0.005,
        prepare: Callable[[Callable[[], bool]], None] | None = None,
        name: str = "batches",
        on_batch: Callable[[Hashable, int, float], None] | None = None,
    ):
        self._compute = compute
        self._batch_size = batch_size
        self._max_waiting = max_waiting
        self._wait_s = wait_s
        self._on_batch = on_batch
        self._changed = threading.Condition()
        # By kind, in their order.
        self._waiting: dict[Hashable, list[_Entry]] = collections.defaultdict(
            list
        )
        self._num_waiting = self._num_dropped = self._num_idle = 0
        self._numbers = itertools.count()
        self._turn = 0
        self._per_second: float | None = None
        self._is_closed = False
        self.ready: Future = Future()
        first = threading.Thread(
            target=self._run, args=(prepare,), name=name, daemon=True
        )
        self._threads = [first] + [
            threading.Thread(target=self._compute_all, name=name, daemon=True)
            for _ in range(num_threads - 1)
        ]
        first.start()

    @property
    def num_waiting(self) -> int:
        """The number of sentences that wait."""
        return self._num_waiting

    def submit(
        self,
        items: Sequence[Any],
        lengths: Sequence[int],
        kind: Hashable = None,
        seconds: float | None = None,
    ) -> Job:
        """Adds the sentences of a request.

        The `future` of the job gets the results. `lengths` are the numbers of
        tokens of the sentences. Only sentences of one `kind` are computed
        together. A request that is not done after `seconds` fails. Raises
        `QueueFullError` if there is no room for all sentences, and
        `QueueClosedError` if the queue was closed.
        """
        now = time.monotonic()
        deadline = None if seconds is None else now + seconds
        job = Job(items, kind, now, deadline)
        if not items:
            job.future.set_result([])
            return job
        with self._changed:
            if self._is_closed:
                raise QueueClosedError("the server stops")
            if self._num_waiting + len(items) > self._max_waiting:
                raise QueueFullError(self._retry_after_s())
            number = next(self._numbers)
            for place, (item, length) in enumerate(
                zip(items, lengths, strict=True)
            ):
                turn = self._turn + place // self._batch_size
                entry = _Entry((turn, number, place), length, job, item)
                bisect.insort(self._waiting[kind], entry, key=_order)
            self._num_waiting += len(items)
            self._changed.notify_all()
        return job

    def cancel(self, job: Job) -> None:
        """Drops what is left of a request, whose client has gone.

        What is being computed now is computed to its end.
        """
        with self._changed:
            self._drop(job, CancelledError())

    def close(self, drop: bool = False) -> None:
        """Takes no more requests, and ends when those that wait are computed.

        With `drop` they are dropped instead, with `CancelledError`.
        """
        with self._changed:
            self._is_closed = True
            if drop:
                self._drop_all()
            self._changed.notify_all()
        for thread in self._threads:
            # The first one has begun the others, if it will.
            if thread.ident and thread is not threading.current_thread():
                thread.join()

    def _retry_after_s(self):
        if not self._per_second:
            return 1
        seconds = math.ceil(self._num_waiting / self._per_second)
        return min(max(1, seconds), _LONGEST_RETRY_S)

    def _drop_all(self):
        for entries in self._waiting.values():
            for entry in entries:
                self._drop(entry.job, CancelledError())

    def _drop(self, job, error):
        self._num_waiting -= job._num_waiting
        self._num_dropped += job._num_waiting
        job._num_waiting = 0
        _finish(job, error=error)
        if self._num_dropped > self._max_waiting:
            self._remove_dropped()

    def _remove_dropped(self):
        """Frees the sentences of requests that were dropped."""
        for kind, entries in self._waiting.items():
            kept = [entry for entry in entries if not entry.job.future.done()]
            self._waiting[kind] = kept
        self._num_dropped = 0

    def _run(self, prepare):
        try:
            if prepare is not None:
                prepare(lambda: self._is_closed)
        except BaseException as error:
            with self._changed:
                self._is_closed = True
                self._drop_all()
            self.ready.set_exception(error)
            return
        for thread in self._threads[1:]:
            thread.start()
        self.ready.set_result(None)
        self._compute_all()

    def _compute_all(self):
        while (batch := self._next_batch()) is not None:
            # Its time may have been over at the last moment.
            if batch:
                self._compute_batch(batch)

    def _next_batch(self):
        """Waits for the next batch; `None` at the end."""
        with self._changed:
            self._num_idle += 1
            try:
                return self._wait_for_batch()
            finally:
                self._num_idle -= 1

    def _wait_for_batch(self):
        while True:
            first = self._first()
            if first is None:
                if self._is_closed:
                    return None
                self._changed.wait()
                continue
            kind = first.job._kind
            left = first.job._start + self._wait_s - time.monotonic()
            is_full = len(self._waiting[kind]) >= self._batch_size
            if left <= 0 or self._is_closed or is_full:
                break
            self._changed.wait(left)
        # It moves on with every batch: no turn is put off for ever.
        self._turn = max(self._turn + 1, first.order[0])
        return self._take(kind)

    def _first(self):
        """The entry whose turn it is, of all kinds."""
        first = None
        for kind in list(self._waiting):
            entries = self._waiting[kind]
            while entries and self._is_over(entries[0].job):
                del entries[0]
            if not entries:
                del self._waiting[kind]
            elif first is None or entries[0].order < first.order:
                first = entries[0]
        return first

    def _is_over(self, job):
        """Whether a job needs no more results; one that is late is dropped."""
        if job.future.done():
            return True
        if job._deadline is not None and time.monotonic() > job._deadline:
            self._drop(job, TimeoutError())
            return True
        return False

    def _take(self, kind):
        entries = self._waiting[kind]
        waiting = (entry for entry in entries if not self._is_over(entry.job))
        choice = list(itertools.islice(waiting, _CHOICE * self._batch_size))
        share = math.ceil(len(choice) / self._num_idle)
        batch = _of_similar_length(choice, min(share, self._batch_size))
        taken = set(map(_order, batch))
        self._waiting[kind] = [e for e in entries if e.order not in taken]
        for entry in batch:
            job = entry.job
            job._num_waiting -= 1
            if job.queued_s is None:
                job.queued_s = time.monotonic() - job._start
        self._num_waiting -= len(batch)
        return batch

    def _compute_batch(self, batch):
        kind, start = batch[0].job._kind, time.monotonic()
        try:
            results = self._checked(kind, [entry.item for entry in batch])
        except Exception as error:
            self._compute_alone(kind, batch, error)
        else:
            self._give(batch, results)
        seconds = max(time.monotonic() - start, 1e-6)
        with self._changed:
            rate = len(batch) / seconds * (len(self._threads) - self._num_idle)
            if self._per_second is not None:
                rate = _NEWEST * rate + (1 - _NEWEST) * self._per_second
            self._per_second = rate
        if self._on_batch is not None:
            self._on_batch(kind, len(batch), seconds)

    def _compute_alone(self, kind, batch, error):
        """Computes a batch that has failed again, for each request alone."""
        by_job = collections.defaultdict(list)
        for entry in batch:
            by_job[entry.job].append(entry)
        for job, entries in by_job.items():
            if len(by_job) > 1:
                try:
                    items = [entry.item for entry in entries]
                    results = self._checked(kind, items)
                except Exception as own_error:
                    error = own_error
                else:
                    self._give(entries, results)
                    continue
            with self._changed:
                self._drop(job, error)

    def _checked(self, kind, items):
        results = self._compute(kind, items)
        if len(results) != len(items):
            raise RuntimeError(
                f"{len(results)} results for {len(items)} sentences"
            )
        return results

    def _give(self, entries, results):
        done = []
        with self._changed:
            for entry, result in zip(entries, results, strict=True):
                job = entry.job
                job._results[entry.order[-1]] = result
                job._num_missing -= 1
                if not job._num_missing:
                    done.append(job)
        for job in done:
            _finish(job, results=job._results)


def _order(entry):
    return entry.order


def _of_similar_length(entries, size):
    """Chooses at most `size` entries for a batch, the first one among them.

    They follow each other in length, and differ in it as little as can be.
    """
    if not entries:
        return []
    entries = sorted(entries, key=lambda entry: (entry.length, entry.order))
    lengths = [max(entry.length, _SHORT) for entry in entries]
    first = min(range(len(entries)), key=lambda n: entries[n].order)
    for number in range(size, 1, -1):
        places = range(
            max(0, first - number + 1), min(first, len(entries) - number) + 1
        )
        found = [(lengths[n + number - 1] / lengths[n], n) for n in places]
        ratio, place = min(found, default=(math.inf, 0))
        if ratio <= _LONGEST_TO_SHORTEST:
            return entries[place : place + number]
    return [entries[first]]


def _finish(job, results=None, error=None):
    """Sets the outcome of a job, unless it has one."""
    try:
        if error is None:
            job.future.set_result(results)
        else:
            job.future.set_exception(error)
    except InvalidStateError:
        pass
