"""What must be true of the analyses of embeddings: the curve starts at zero,
never rises and is flat for an orthonormal matrix; the similarity is the mean
cosine of the pairs, with and without those that are one word."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_deepnmt.analysis import embedding_similarity, singular_value_curve
from keras_deepnmt.analysis.embeddings import embedding_figures

V, D = 13, 7


@pytest.fixture
def matrix():
    return np.random.default_rng(0).normal(size=(V, D))


def test_the_curve_starts_at_zero_and_never_rises(matrix):
    curve = singular_value_curve(matrix)
    assert curve.shape == (D,)
    assert curve[0] == 0.0
    assert np.all(np.diff(curve) <= 0.0)


def test_orthonormal_columns_give_zeros(matrix):
    orthonormal, _ = np.linalg.qr(matrix)
    np.testing.assert_allclose(singular_value_curve(orthonormal), 0, atol=1e-12)


def test_the_curve_is_that_of_known_singular_values(matrix):
    left, _ = np.linalg.qr(matrix)
    right, _ = np.linalg.qr(matrix[:D])
    values = np.array([5.0, 4.0, 3.0, 2.5, 2.0, 1.0, 0.5])
    curve = singular_value_curve(left * values @ right.T)
    np.testing.assert_allclose(curve, np.log(values / 5.0), atol=1e-12)
    # Neither the scale nor an order of words matters.
    again = singular_value_curve((left * values @ right.T)[::-1] * 3.0)
    np.testing.assert_allclose(again, curve, atol=1e-12)


def test_a_matrix_of_low_rank_falls_without_end():
    curve = singular_value_curve(np.diag([1.0, 1.0, 0.0]))
    assert curve.tolist() == [0.0, 0.0, -np.inf]


@pytest.mark.parametrize("wrong", [np.zeros((V, D)), np.ones(V)])
def test_refuses_what_has_no_curve(wrong):
    with pytest.raises(ValueError, match="two axes"):
        singular_value_curve(wrong)


def cosine(x, y):
    return x @ y / np.sqrt((x @ x) * (y @ y))


def test_the_similarity_is_the_mean_cosine(matrix):
    other = matrix[::-1] + 0.5
    pairs = [(0, 3), (2, 2), (5, 1)]
    cosines = [cosine(matrix[s], other[t]) for s, t in pairs]
    found = embedding_similarity(matrix, other, pairs)
    assert found["all"] == pytest.approx(np.mean(cosines))
    assert found["non_shared"] == pytest.approx((cosines[0] + cosines[2]) / 2)


def test_words_tell_which_pairs_are_shared(matrix):
    source_words = ["haus", "berlin", "hund"]
    target_words = ["berlin", "house", "dog"]
    pairs = [(0, 1), (1, 0), (2, 2)]
    found = embedding_similarity(
        matrix, matrix, pairs, source_words, target_words
    )
    expected = (cosine(matrix[0], matrix[1]) + 1.0) / 2
    assert found["non_shared"] == pytest.approx(expected)


def test_only_shared_pairs_leave_nothing_to_mean(matrix):
    found = embedding_similarity(matrix, matrix, [(1, 1), (2, 2)])
    assert found["all"] == pytest.approx(1.0)
    assert np.isnan(found["non_shared"])


def test_refuses_no_pairs_and_the_words_of_one_side(matrix):
    with pytest.raises(ValueError, match="0 pairs"):
        embedding_similarity(matrix, matrix, [])
    with pytest.raises(ValueError, match="target_words=False"):
        embedding_similarity(matrix, matrix, [(0, 0)], source_words=["a"])


class Store(list):
    def read(self, places):
        return [self[place] for place in places]


@pytest.mark.parametrize(("number", "has_table"), [(2, False), (30, True)])
def test_a_little_training_text_has_no_similarity(matrix, number, has_table):
    pairs = [([4, 5], [6, 7]), ([4], [6])] * number
    tokenizer = SimpleNamespace(vocabulary_size=V, pieces=list)
    layer = SimpleNamespace(embeddings=matrix)
    store = Store(pairs)
    run = SimpleNamespace(
        model=SimpleNamespace(source_embedding=layer, target_embedding=layer),
        data=SimpleNamespace(store=lambda split: store),
        translator=SimpleNamespace(
            source_tokenizer=tokenizer, target_tokenizer=tokenizer
        ),
    )
    names = {figure.name for figure in embedding_figures(run)}
    assert {"embedding_spectrum", "embedding_components"} <= names
    assert ("bilingual_similarity" in names) == has_table
