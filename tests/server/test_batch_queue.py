"""What must be true of the queue of sentences, whatever the model.

* every sentence has its own result, in the order of its request
* a batch has sentences of similar length and of one kind, and is full if it
  can be
* a request of one sentence does not wait for all of a large one, and a large
  one is not put off for ever
* what nobody waits for is not computed
* a request that fails fails alone
"""

import random
import threading
import time
from concurrent.futures import CancelledError

import pytest

from keras_deepnmt.server.batch_queue import (
    BatchQueue,
    QueueClosedError,
    QueueFullError,
)

SECONDS = 20


class Model:
    """Writes in capitals, one batch at a time, and only when it may."""

    def __init__(self):
        self.batches, self.threads = [], set()
        self.may_go, self.has_begun = threading.Event(), threading.Event()
        self.may_go.set()

    def __call__(self, kind, items):
        self.threads.add(threading.current_thread())
        self.batches.append(list(items))
        self.has_begun.set()
        assert self.may_go.wait(SECONDS)
        if "wrong" in items:
            raise ValueError("wrong")
        return [item.upper() for item in items]


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def queue(model):
    queue = BatchQueue(model, batch_size=4, max_waiting=40, wait_s=0.01)
    yield queue
    model.may_go.set()
    queue.close()


def submit(queue, *items, length=5, **more):
    return queue.submit(items, [length] * len(items), **more)


def result(job):
    return job.future.result(SECONDS)


@pytest.fixture
def busy(queue, model):
    """A queue whose model computes another request until it may go."""
    model.may_go.clear()
    submit(queue, "busy")
    assert model.has_begun.wait(SECONDS)
    model.batches.clear()
    return queue


@pytest.mark.parametrize("num_threads", [1, 3])
def test_each_sentence_has_its_own_result(model, num_threads):
    queue = BatchQueue(
        model,
        batch_size=4,
        max_waiting=10_000,
        num_threads=num_threads,
        wait_s=0.001,
    )
    random.seed(0)
    found, threads = {}, []

    def ask(client):
        for number in range(5):
            items = [
                f"{client} {number} {place}"
                for place in range(random.randint(0, 9))
            ]
            lengths = [random.randint(1, 60) for _ in items]
            job = queue.submit(items, lengths)
            found[client, number] = result(job) == [i.upper() for i in items]

    for client in range(16):
        threads.append(threading.Thread(target=ask, args=(client,)))
        threads[-1].start()
    for thread in threads:
        thread.join(SECONDS)
    queue.close()
    assert len(found) == 16 * 5 and all(found.values())
    assert len(model.threads) <= num_threads


def test_a_batch_is_filled_while_the_model_computes(busy, model):
    jobs = [submit(busy, letter) for letter in "abcdef"]
    model.may_go.set()
    assert [result(job) for job in jobs] == [[x] for x in "ABCDEF"]
    assert model.batches == [list("abcd"), list("ef")]


def test_a_batch_has_sentences_of_similar_length(busy, model):
    jobs = [submit(busy, "short", length=3), submit(busy, "long", length=60)]
    jobs += [submit(busy, "as short", length=4), submit(busy, "b", length=33)]
    model.may_go.set()
    for job in jobs:
        result(job)
    assert model.batches == [["short", "as short"], ["b", "long"]]


def test_a_batch_has_the_sentences_that_are_next_in_length(busy, model):
    lengths = [30, 12, 40, 13, 31, 11, 33, 14]
    jobs = [submit(busy, str(n), length=n) for n in lengths]
    model.may_go.set()
    for job in jobs:
        result(job)
    assert model.batches == [["30", "31", "33", "40"], ["11", "12", "13", "14"]]


def test_sentences_of_any_length_have_their_turn(model):
    queue = BatchQueue(model, batch_size=4, max_waiting=999, wait_s=0)
    model.may_go.clear()
    submit(queue, *["busy"] * 4)
    long = submit(queue, "long", length=60)
    short = [submit(queue, "short", length=5) for _ in range(40)]
    model.may_go.set()
    result(long)
    assert ["long"] in model.batches[:2]
    for job in short:
        result(job)
    queue.close()


def test_threads_compute_batches_at_once(model):
    both = threading.Barrier(2)

    def compute(kind, items):
        both.wait(SECONDS)
        return model(kind, items)

    queue = BatchQueue(compute, batch_size=4, num_threads=2, wait_s=0.2)
    end = time.monotonic() + SECONDS
    while queue._num_idle < 2 and time.monotonic() < end:
        time.sleep(0.01)
    # One batch has room for them: the threads divide what waits.
    found = submit(queue, *"abcd")
    assert result(found) == list("ABCD")
    assert sorted(map(sorted, model.batches)) == [["a", "b"], ["c", "d"]]
    assert len(model.threads) == 2
    queue.close()
    assert not any(thread.is_alive() for thread in model.threads)


def test_a_batch_has_sentences_of_one_kind(busy, model):
    jobs = [submit(busy, "a", kind=1), submit(busy, "b", kind=2)]
    jobs += [submit(busy, "c", kind=1)]
    model.may_go.set()
    for job in jobs:
        result(job)
    assert model.batches == [["a", "c"], ["b"]]


def test_a_large_request_does_not_hold_up_a_small_one(busy, model):
    large = submit(busy, *(f"large {number}" for number in range(30)))
    small = submit(busy, "small")
    model.may_go.set()
    result(small), result(large)
    place = next(n for n, items in enumerate(model.batches) if "small" in items)
    assert place <= 1


def test_a_large_request_is_not_put_off_by_small_ones(model):
    queue = BatchQueue(model, batch_size=1, max_waiting=999, wait_s=0)
    model.may_go.clear()
    large = submit(queue, *map(str, range(10)))
    stop = threading.Event()

    def keep_asking():
        while not stop.is_set():
            # More than are computed.
            jobs = [submit(queue, "small") for _ in range(3)]
            result(jobs[0])

    thread = threading.Thread(target=keep_asking)
    thread.start()
    model.may_go.set()
    try:
        assert result(large) == list("0123456789")
        assert len(model.batches) < 200
    finally:
        stop.set()
        thread.join(SECONDS)
        queue.close(drop=True)


def test_a_lone_sentence_waits_only_for_a_moment(queue):
    start = time.monotonic()
    job = submit(queue, "a")
    assert result(job) == ["A"]
    assert time.monotonic() - start < 5
    assert job.queued_s < 5


def test_a_full_queue_refuses_a_request_and_says_when_to_come_back(busy):
    jobs = [submit(busy, *"abcdefgh") for _ in range(5)]
    with pytest.raises(QueueFullError) as full:
        submit(busy, "one more")
    assert full.value.retry_after_s >= 1
    busy.cancel(jobs[0])
    assert busy.num_waiting == 32
    submit(busy, "one more")


def test_what_was_cancelled_is_not_computed(busy, model):
    gone, stays = submit(busy, "gone", "gone too"), submit(busy, "stays")
    busy.cancel(gone)
    model.may_go.set()
    assert result(stays) == ["STAYS"]
    with pytest.raises(CancelledError):
        result(gone)
    assert model.batches == [["stays"]]


def test_cancelled_requests_keep_no_room_and_no_memory(busy):
    for _ in range(100):
        busy.cancel(submit(busy, *["gone"] * 40))
    assert busy.num_waiting == 0
    assert sum(map(len, busy._waiting.values())) <= 80


def test_a_late_request_fails_and_is_not_computed(busy, model):
    late, other = submit(busy, "late", seconds=0.01), submit(busy, "other")
    time.sleep(0.05)
    model.may_go.set()
    assert result(other) == ["OTHER"]
    with pytest.raises(TimeoutError):
        result(late)
    assert model.batches == [["other"]]


def test_a_request_that_is_late_at_the_last_moment_fails_alone(model):
    class Late(BatchQueue):
        def _take(self, kind):
            for entry in self._waiting[kind]:
                if entry.item == "late":
                    entry.job._deadline = 0
            return super()._take(kind)

    queue = Late(model, wait_s=0)
    with pytest.raises(TimeoutError):
        result(submit(queue, "late", seconds=SECONDS))
    assert result(submit(queue, "after")) == ["AFTER"]
    queue.close()


def test_a_request_with_a_fault_fails_alone(busy, model):
    jobs = [submit(busy, word) for word in ("a", "wrong", "b")]
    model.may_go.set()
    assert result(jobs[0]) == ["A"] and result(jobs[2]) == ["B"]
    with pytest.raises(ValueError, match="wrong"):
        result(jobs[1])
    assert result(submit(busy, "after")) == ["AFTER"]


def test_a_model_that_loses_a_result_is_an_error():
    queue = BatchQueue(lambda kind, items: items[1:])
    with pytest.raises(RuntimeError, match="0 results for 1"):
        result(submit(queue, "a"))
    queue.close()


def test_closing_computes_what_waits_and_takes_no_more(busy, model):
    jobs = [submit(busy, letter) for letter in "abcdef"]
    model.may_go.set()
    busy.close()
    assert [job.future.result(0) for job in jobs] == [[x] for x in "ABCDEF"]
    with pytest.raises(QueueClosedError):
        submit(busy, "late")


def test_closing_may_drop_what_waits(busy, model):
    job = submit(busy, "a")
    threading.Timer(0.05, model.may_go.set).start()
    busy.close(drop=True)
    with pytest.raises(CancelledError):
        result(job)


def test_it_is_ready_when_it_is_prepared():
    begun = threading.Event()
    queue = BatchQueue(
        lambda kind, items: items, prepare=lambda _: begun.wait(SECONDS)
    )
    job = submit(queue, "a")
    assert not queue.ready.done()
    begun.set()
    queue.ready.result(SECONDS)
    assert result(job) == ["a"]
    queue.close()


def test_closing_ends_what_prepares_it_early():
    begun = threading.Event()

    def prepare(is_closed):
        begun.set()
        for _ in range(10 * SECONDS):
            if is_closed():
                return
            time.sleep(0.1)
        pytest.fail("it was prepared to its end")

    queue = BatchQueue(lambda kind, items: items, prepare=prepare)
    assert begun.wait(SECONDS)
    queue.close(drop=True)
    queue.ready.result(SECONDS)


def test_it_says_why_it_could_not_be_prepared():
    def fail(is_closed):
        raise ValueError("no weights")

    queue = BatchQueue(lambda kind, items: items, prepare=fail)
    with pytest.raises(ValueError, match="no weights"):
        queue.ready.result(SECONDS)
    with pytest.raises(QueueClosedError):
        submit(queue, "a")
