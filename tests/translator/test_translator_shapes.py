"""The shapes in which the batches of a call are searched."""

import itertools

import numpy as np
import pytest

from keras_deepnmt.translator.batches import Shape, choose_shapes

LENGTHS = (8, 16, 32, 64, 96)
# The padding that may be added to save a shape.
PADDING = 16_000


def any_number(length):
    return 9_999


def test_batches_of_one_length_have_one_number_of_rows():
    batches = [(30, Shape(32, 16)), (3, Shape(4, 16))]
    assert choose_shapes(batches, any_number, PADDING) == {16: Shape(32, 16)}


def test_few_sentences_are_padded_to_the_length_of_others():
    batches = [(30, Shape(32, 16)), (3, Shape(4, 32))]
    assert choose_shapes(batches, any_number, PADDING) == {
        16: Shape(32, 32),
        32: Shape(32, 32),
    }


def test_many_sentences_have_a_shape_of_their_own():
    number = PADDING // 16
    batches = [(number + 1, Shape(32, 16)), (3, Shape(4, 32))]
    assert choose_shapes(batches, any_number, PADDING) == {
        16: Shape(32, 16),
        32: Shape(4, 32),
    }


def test_no_batch_has_more_rows_than_its_length_allows():
    batches = [(30, Shape(32, 16)), (3, Shape(4, 32))]
    assert choose_shapes(batches, lambda length: 512 // length, PADDING) == {
        16: Shape(32, 16),
        32: Shape(4, 32),
    }


def test_nothing_is_chosen_for_no_batches():
    assert choose_shapes([], any_number, PADDING) == {}


@pytest.mark.parametrize("seed", range(20))
def test_no_other_choice_costs_less(seed):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, 1_500, len(LENGTHS)).tolist()
    batches = [
        (number, Shape(32, length))
        for number, length in zip(numbers, LENGTHS, strict=True)
    ]
    chosen = choose_shapes(batches, any_number, PADDING)

    def cost(lengths):
        return len(lengths) * PADDING + sum(
            number * (min(x for x in lengths if x >= length) - length)
            for number, length in zip(numbers, LENGTHS, strict=True)
        )

    assert cost({shape.length for shape in chosen.values()}) == min(
        cost({*others, LENGTHS[-1]})
        for size in range(len(LENGTHS))
        for others in itertools.combinations(LENGTHS[:-1], size)
    )
