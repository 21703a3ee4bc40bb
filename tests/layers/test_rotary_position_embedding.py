"""What must be true of RotaryPositionEmbedding: a query and a key are turned by
the angles of Equation 34, lengths stay, and an odd head is refused."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import RotaryPositionEmbedding

B, N, T, H = 2, 3, 7, 10


@pytest.fixture
def vectors():
    random = np.random.default_rng(0)
    return random.normal(size=(B, N, T, H)).astype("float32")


def reference(vectors, positions, wavelength):
    """Each pair of channels is a complex number, which is turned."""
    turned = np.zeros(vectors.shape)
    for t, position in enumerate(positions):
        for i in range(H // 2):
            angle = position * wavelength ** (-2 * i / H)
            number = vectors[..., t, i] + 1j * vectors[..., t, i + H // 2]
            number = number * np.exp(1j * angle)
            turned[..., t, i] = number.real
            turned[..., t, i + H // 2] = number.imag
    return turned


@pytest.mark.parametrize("wavelength", [10_000.0, 50.0])
def test_matches_the_equation(vectors, wavelength):
    layer = RotaryPositionEmbedding(wavelength)
    positions = np.array([0, 1, 2, 5, 11, 31, 211], "int32")
    np.testing.assert_allclose(
        layer.rotate(vectors, positions),
        reference(vectors, positions, wavelength),
        atol=1e-4,
    )


def test_one_position_holds_for_all_vectors(vectors):
    layer = RotaryPositionEmbedding()
    np.testing.assert_allclose(
        layer.rotate(vectors, np.array([5])),
        reference(vectors, [5] * T, 10_000.0),
        atol=1e-5,
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_far_positions_are_exact_in_half_precision(vectors, dtype):
    # 1,001 and its angles are no numbers of these types.
    vectors = keras.ops.cast(vectors, dtype)
    turned = RotaryPositionEmbedding().rotate(vectors, np.array([1_001]))
    assert keras.backend.standardize_dtype(turned.dtype) == dtype
    vectors, turned = (
        np.asarray(keras.ops.cast(x, "float32")) for x in (vectors, turned)
    )
    expected = reference(vectors, [1_001] * T, 10_000.0)
    np.testing.assert_allclose(turned, expected, rtol=0.02, atol=0.03)


def test_a_vector_keeps_its_length_and_position_0_changes_nothing(vectors):
    turned = np.asarray(RotaryPositionEmbedding().rotate(vectors, np.arange(T)))
    np.testing.assert_array_equal(turned[:, :, 0], vectors[:, :, 0])
    np.testing.assert_allclose(
        np.linalg.norm(turned, axis=-1),
        np.linalg.norm(vectors, axis=-1),
        rtol=1e-5,
    )
    assert np.abs(turned - vectors)[:, :, 1:].max(axis=-1).min() > 0.1


def test_refuses_an_odd_head():
    vectors = np.zeros((B, N, T, 5), "float32")
    with pytest.raises(ValueError, match="must be even.*a width of 5"):
        RotaryPositionEmbedding()(vectors, vectors, vectors)
