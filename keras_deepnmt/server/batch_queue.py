"""Collects sentences of many requests into batches for one model.

It knows neither models nor web servers: a function computes batches, in the
one thread that this queue has.
"""

import collections
import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any

# How much the newest batch counts in the mean of the sentences per second.
_NEWEST = 0.2
_LONGEST_RETRY_S = 60


class QueueFullError(Exception):
    """Raised where a queue has no room for a request.

    Args:
        retry_after_s: whole seconds after which there may be room.
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


class BatchQueue:
    """Computes the sentences of many requests in batches.

    A batch has sentences of one kind and of similar length: at most four times
    the tokens of its shortest ones. It is computed as soon as it is full, or
    when a sentence in it has waited for `wait_s`; while the model computes, the
    next batch fills.

    Requests take turns. In each turn a request has as many sentences as a
    batch, so that one sentence does not wait for all of a large request, and a
    turn comes after a known number of batches, however many requests come
    later.

    Args:
        compute: function that takes a kind and a list of sentences, and returns
            as many results. It is called in one thread, and a batch that it
            fails for is computed again for each request alone, so that only the
            request with the fault fails.
        batch_size: largest number of sentences of a batch.
        max_waiting: largest number of sentences that wait.
        wait_s: seconds for which a batch waits for more sentences.
        prepare: function that the thread calls first, such as a warm-up.
        name: name of the thread.
        on_batch: function that is called after each batch, with its kind, the
            number of sentences, and the seconds that it took.

    Example:
    >>> queue = BatchQueue(lambda kind, texts: [t.upper() for t in texts])
    >>> queue.submit(["a dog", "a cat"], [3, 3]).future.result()
    ['A DOG', 'A CAT']
    >>> queue.close()
    """

    def __init__(
        self,
        compute: Callable[[Hashable, list], Sequence],
        *,
        batch_size: int = 32,
        max_waiting: int = 4096,
        wait_s: float = 0.005,
        prepare: Callable[[], None] | None = None,
        name: str = "batches",
        on_batch: Callable[[Hashable, int, float], None] | None = None,
    ):
        self._compute = compute
        self._batch_size = batch_size
        self._max_waiting = max_waiting
        self._wait_s = wait_s
        self._on_batch = on_batch
        self._changed = threading.Condition()
        # By kind and class of lengths: heaps of (turn, number, place, ...).
        self._waiting: dict[tuple, list] = collections.defaultdict(list)
        self._num_waiting = self._num_dropped = 0
        self._numbers = itertools.count()
        self._turn = 0
        self._per_second: float | None = None
        self._is_closed = False
        self.ready: Future = Future()
        self._thread = threading.Thread(
            target=self._run, args=(prepare,), name=name, daemon=True
        )
        self._thread.start()

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

        Args:
            items: the sentences.
            lengths: numbers of tokens of each.
            kind: only sentences of one kind are computed together.
            seconds: time until the request fails, if it is not done.

        Returns:
            The `Job`, whose `future` gets the results.

        Raises:
            QueueFullError: if there is no room for all of them.
            QueueClosedError: if the queue was closed.
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
                key = (kind, int(length).bit_length())
                # No two entries agree up to here: items are not compared.
                entry = (turn, number, place, job, item)
                heapq.heappush(self._waiting[key], entry)
            self._num_waiting += len(items)
            self._changed.notify()
        return job

    def cancel(self, job: Job) -> None:
        """Drops what is left of a request, whose client has gone.

        What is being computed now is computed to its end.
        """
        with self._changed:
            self._drop(job, CancelledError())

    def close(self, drop: bool = False) -> None:
        """Takes no more requests, and ends when those that wait are computed.

        Args:
            drop: whether they are dropped instead, with `CancelledError`.
        """
        with self._changed:
            self._is_closed = True
            if drop:
                for entries in self._waiting.values():
                    for *_, job, _ in entries:
                        self._drop(job, CancelledError())
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _retry_after_s(self):
        if not self._per_second:
            return 1
        seconds = math.ceil(self._num_waiting / self._per_second)
        return min(max(1, seconds), _LONGEST_RETRY_S)

    def _drop(self, job, error):
        self._num_waiting -= job._num_waiting
        self._num_dropped += job._num_waiting
        job._num_waiting = 0
        _finish(job, error=error)
        if self._num_dropped > self._max_waiting:
            self._remove_dropped()

    def _remove_dropped(self):
        """Frees the sentences of requests that were dropped."""
        for key, entries in list(self._waiting.items()):
            kept = [entry for entry in entries if not entry[3].future.done()]
            heapq.heapify(kept)
            self._waiting[key] = kept
        self._num_dropped = 0

    def _run(self, prepare):
        try:
            if prepare is not None:
                prepare()
        except BaseException as error:
            with self._changed:
                self._is_closed = True
                for entries in self._waiting.values():
                    for *_, job, _ in entries:
                        self._drop(job, CancelledError())
            self.ready.set_exception(error)
            return
        self.ready.set_result(None)
        while (batch := self._next_batch()) is not None:
            if batch:
                self._compute_batch(batch)

    def _next_batch(self):
        """Waits for the next batch; `None` at the end."""
        with self._changed:
            while True:
                first = self._first()
                if first is None:
                    if self._is_closed:
                        return None
                    self._changed.wait()
                    continue
                key, (turn, _, _, job, _) = first
                left = job._start + self._wait_s - time.monotonic()
                if left <= 0 or self._is_closed or self._is_full(key):
                    break
                self._changed.wait(left)
            # It moves on with every batch: no turn is put off for ever.
            self._turn = max(self._turn + 1, turn)
            return self._take(key)

    def _first(self):
        """The class of the entry whose turn it is, and the entry."""
        best = None
        for key in list(self._waiting):
            entries = self._waiting[key]
            while entries and self._is_over(entries[0][3]):
                heapq.heappop(entries)
            if not entries:
                del self._waiting[key]
            elif best is None or entries[0][:2] < best[1][:2]:
                best = key, entries[0]
        return best

    def _is_over(self, job):
        """Whether a job needs no more results; one that is late is dropped."""
        if job.future.done():
            return True
        if job._deadline is not None and time.monotonic() > job._deadline:
            self._drop(job, TimeoutError())
            return True
        return False

    def _classes(self, key):
        kind, bits = key
        return [key, (kind, bits - 1)]

    def _is_full(self, key):
        found = sum(len(self._waiting.get(k, ())) for k in self._classes(key))
        return found >= self._batch_size

    def _take(self, key):
        batch = []
        while len(batch) < self._batch_size:
            heaps = [
                entries
                for k in self._classes(key)
                if (entries := self._waiting.get(k))
            ]
            if not heaps:
                break
            entry = heapq.heappop(
                min(heaps, key=lambda entries: entries[0][:3])
            )
            job = entry[3]
            if self._is_over(job):
                continue
            job._num_waiting -= 1
            self._num_waiting -= 1
            if job.queued_s is None:
                job.queued_s = time.monotonic() - job._start
            batch.append(entry)
        return batch

    def _compute_batch(self, batch):
        kind, start = batch[0][3]._kind, time.monotonic()
        try:
            results = self._checked(kind, [entry[4] for entry in batch])
        except Exception as error:
            self._compute_alone(kind, batch, error)
        else:
            for (_, _, place, job, _), result in zip(
                batch, results, strict=True
            ):
                self._give(job, place, result)
        seconds = max(time.monotonic() - start, 1e-6)
        rate = len(batch) / seconds
        if self._per_second is not None:
            rate = _NEWEST * rate + (1 - _NEWEST) * self._per_second
        self._per_second = rate
        if self._on_batch is not None:
            self._on_batch(kind, len(batch), seconds)

    def _compute_alone(self, kind, batch, error):
        """Computes a batch that has failed again, for each request alone."""
        by_job = collections.defaultdict(list)
        for _, _, place, job, item in batch:
            by_job[job].append((place, item))
        for job, entries in by_job.items():
            if len(by_job) > 1:
                try:
                    items = [item for _, item in entries]
                    results = self._checked(kind, items)
                except Exception as own_error:
                    error = own_error
                else:
                    for (place, _), result in zip(
                        entries, results, strict=True
                    ):
                        self._give(job, place, result)
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

    def _give(self, job, place, result):
        job._results[place] = result
        job._num_missing -= 1
        if not job._num_missing:
            _finish(job, results=job._results)


def _finish(job, results=None, error=None):
    """Sets the outcome of a job, unless it has one."""
    try:
        if error is None:
            job.future.set_result(results)
        else:
            job.future.set_exception(error)
    except InvalidStateError:
        pass
