"""Shapes that are compiled while others are searched."""

import threading

import pytest

from keras_deepnmt.translator.batches import length_batches
from keras_deepnmt.xla.compiled import PreparedShapes


def test_a_search_waits_for_what_is_being_compiled():
    shapes, begun, done = PreparedShapes(True), threading.Event(), []
    may_end = threading.Event()

    def compile_it():
        begun.set()
        may_end.wait(10)
        done.append(True)

    shapes.prepare((32, 16), compile_it)
    assert begun.wait(10)
    shapes.wait_for((32, 8))  # another shape
    assert not done
    may_end.set()
    shapes.wait_for((32, 16))
    assert done == [True]


def test_each_shape_is_prepared_once():
    shapes, calls = PreparedShapes(True), []
    for _ in range(3):
        shapes.prepare((32, 16), lambda: calls.append(1))
    shapes.wait_for((32, 16))
    shapes.prepare((32, 16), lambda: calls.append(2))
    shapes.wait_for((32, 16))
    assert calls == [1]


def test_errors_are_left_to_the_search_itself():
    shapes = PreparedShapes(True)
    shapes.prepare((1, 8), lambda: 1 / 0)
    shapes.wait_for((1, 8))


def test_nothing_is_prepared_for_plain_graphs():
    shapes = PreparedShapes(False)
    shapes.prepare((1, 8), pytest.fail)
    shapes.wait_for((1, 8))


def test_a_batch_ends_where_that_saves_much_padding():
    lengths = [20] * 30 + [40] * 3
    assert [len(group) for group in length_batches(lengths, 32, 9_999)] == [
        30,
        3,
    ]
    # Two short sentences are padded, which costs less than another batch.
    assert [len(g) for g in length_batches([20, 20, 40], 32, 9_999)] == [3]
