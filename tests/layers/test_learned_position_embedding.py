"""What must be true of LearnedPositionEmbedding: position t has row t of the
table, counted from any start; positions after the last row have that row."""

import numpy as np
import pytest

from keras_deepnmt.layers import LearnedPositionEmbedding

B, T, D, M = 3, 7, 5, 11


@pytest.mark.parametrize("start", [0, 2, 8, 20, np.int64(3)])
def test_a_position_has_its_row(start):
    layer = LearnedPositionEmbedding(M)
    inputs = np.zeros((B, T, D), "float32")
    found = np.asarray(layer(inputs, start_index=start))
    (table,) = layer.get_weights()
    assert found.shape == layer.compute_output_shape((B, T, D)) == (1, T, D)
    for t in range(T):
        row = table[min(start + t, M - 1)]
        np.testing.assert_array_equal(found[0, t], row)

    adding = LearnedPositionEmbedding(M, add_to_inputs=True)
    inputs += 2.0
    adding.build(inputs.shape)
    adding.set_weights([table])
    sums = np.asarray(adding(inputs, start_index=start))
    assert sums.shape == adding.compute_output_shape((B, T, D)) == (B, T, D)
    np.testing.assert_array_equal(sums, inputs + found)


def test_the_table_starts_as_asked_for():
    layer = LearnedPositionEmbedding(300, stddev=0.1)
    layer.build((None, None, 200))
    assert layer.count_params() == 300 * 200
    np.testing.assert_allclose(np.std(layer.get_weights()[0]), 0.1, rtol=0.02)


def test_refuses_a_table_without_rows():
    with pytest.raises(ValueError, match="max_length=0"):
        LearnedPositionEmbedding(0)
