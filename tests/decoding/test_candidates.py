"""The largest values by blocks are those of a full sort."""

import keras
import numpy as np
import pytest

from keras_deepnmt.decoding.candidates import blockwise_top_k


def largest(x, k):
    """Values and places by a stable sort: of equal values the first counts."""
    places = np.argsort(-x, axis=-1, kind="stable")[:, :k]
    return np.take_along_axis(x, places, axis=-1), places


@pytest.mark.thorough
@pytest.mark.parametrize("k", [1, 2, 4, 7])
@pytest.mark.parametrize("size", [7, 128, 500, 512, 1_000, 4_097])
@pytest.mark.parametrize("equal_values", [False, True])
def test_values_and_places_are_those_of_a_sort(k, size, equal_values):
    rng = np.random.default_rng(size)
    for _ in range(5):
        x = rng.normal(size=(6, size)).astype("float32")
        if equal_values:
            x = np.round(x)
        values, places = blockwise_top_k(keras.ops.convert_to_tensor(x), k)
        expected = largest(x, k)
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(places, expected[1])


def test_rows_of_impossible_values_give_places_of_the_row():
    x = np.full((2, 700), -1e9, "float32")
    values, places = blockwise_top_k(keras.ops.convert_to_tensor(x), 4)
    np.testing.assert_array_equal(values, -1e9)
    assert (np.asarray(places) < 700).all()
