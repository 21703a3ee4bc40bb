"""Functions are called in several threads; their results come in order."""

import threading
import time
from functools import partial

import pytest

from keras_deepnmt.threads import num_cores, results_in_order


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_results_are_in_the_order_of_the_calls(at_once):
    def call(number):
        # Later ones are done sooner.
        time.sleep(0.002 * (9 - number))
        return number

    calls = (partial(call, number) for number in range(9))
    assert list(results_in_order(calls, at_once)) == list(range(9))


def test_so_many_are_called_at_once():
    both = threading.Barrier(2, timeout=20)
    # Each waits for another one, which only another thread can call.
    found = list(results_in_order([both.wait] * 4, at_once=2))
    assert sorted(found) == [0, 0, 1, 1]


@pytest.mark.parametrize("at_once", [1, 2])
def test_calls_are_made_by_the_caller_and_no_sooner_than_needed(at_once):
    made = []

    def calls():
        for number in range(20):
            made.append(threading.current_thread())
            yield lambda number=number: number

    for result in results_in_order(calls(), at_once):
        assert len(made) <= result + 1 + at_once
    assert set(made) == {threading.current_thread()}


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_error_is_raised_in_its_place_and_ends_the_calls(at_once):
    called = []

    def call(number):
        called.append(number)
        if number == 3:
            raise ValueError("the fourth")
        return number

    results = results_in_order(map(partial(partial, call), range(99)), at_once)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="the fourth"):
        next(results)
    assert len(called) < 10


def test_there_is_a_core():
    assert num_cores() >= 1
