"""What must be true of CKA: its identities, and a case by hand."""

import numpy as np
import pytest

from keras_deepnmt.analysis import (
    centered_kernel_alignment,
    layer_similarities,
)

X = np.random.default_rng(0).normal(size=(50, 6))


def test_rotations_scales_and_shifts_do_not_matter():
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))
    other = 3 * X @ rotation + 7
    assert centered_kernel_alignment(X, other) == pytest.approx(1)
    y = np.random.default_rng(2).normal(size=(50, 4))
    value = centered_kernel_alignment(X, y)
    assert 0 < value < 0.5
    assert centered_kernel_alignment(y, other) == pytest.approx(value)


def test_orthogonal_representations_have_none_in_common():
    x = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    assert centered_kernel_alignment(x, y) == pytest.approx(0)
    both = np.concatenate([x, y], axis=1)
    # By hand: (4 / (4 sqrt(4^2 + 4^2)))^2 of the squared cross-covariance.
    assert centered_kernel_alignment(x, both) == pytest.approx(2**-0.5)
    assert np.isnan(centered_kernel_alignment(x, np.ones((4, 2))))


def test_layers_are_compared_at_real_tokens():
    states = {
        "a": X[:10].reshape(2, 5, 6),
        "b": X[:10].reshape(2, 5, 6).copy(),
    }
    mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
    states["b"][1, 3:] = 99.0
    names, table = layer_similarities(states, mask)
    assert names == ["a", "b"]
    np.testing.assert_allclose(table, np.ones((2, 2)))
    _, all_tokens = layer_similarities(states, np.ones((2, 5), bool))
    assert all_tokens[0, 1] < 0.9


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="same number of rows"):
        centered_kernel_alignment(X, X[1:])
    with pytest.raises(ValueError, match="Received: a of shape"):
        layer_similarities({"a": X}, np.ones((2, 25), bool))
