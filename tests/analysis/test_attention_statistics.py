"""What must be true of attention statistics, where the answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_deepnmt.analysis import align_by_attention, attention_entropy
from keras_deepnmt.analysis.attention import attention_figures


def test_entropy_is_zero_for_one_position_and_ln_s_for_all():
    one = np.eye(4)[None, None].repeat(2, axis=0)  # (2, 1, 4, 4)
    even = np.full((2, 1, 4, 4), 0.25)
    half = np.tile([0.5, 0.5, 0.0, 0.0], (2, 1, 4, 1))
    weights = np.concatenate([one, even, half], axis=1)
    np.testing.assert_allclose(
        attention_entropy(weights), [0, np.log(4), np.log(2)], atol=1e-12
    )


def test_padding_is_not_counted_and_branches_are_kept():
    weights = np.zeros((1, 2, 3, 2, 4))  # (B, n, N, T, S)
    weights[..., 0, 0] = 1.0
    weights[..., 1, :] = 0.25
    found = attention_entropy(weights, [[True, False]])
    np.testing.assert_array_equal(found, np.zeros((2, 3)))
    both = attention_entropy(weights)
    np.testing.assert_allclose(both, np.full((2, 3), np.log(4) / 2))


def test_the_entropy_of_batches_is_that_of_all_sentences(monkeypatch):
    name = "decoder_block_1/attention/weights"
    weights = np.random.default_rng(0).dirichlet(np.ones(4), (5, 2, 4))
    mask = np.arange(4) < np.array([[1], [4], [2], [3], [3]])

    def record_batches(names):
        for batch in ([0, 1], [2, 3], [4]):
            yield batch, {name: weights[batch] for name in names}

    run = SimpleNamespace(
        names=[name],
        sources=["a"] * 5,
        source_mask=mask,
        target_mask=mask,
        model=None,
        record=lambda names, rows: {name: weights[rows] for name in names},
        record_batches=record_batches,
    )
    for unused in ("branch_names", "self_attention_maps", "_cross_maps"):
        monkeypatch.setattr(
            f"keras_deepnmt.analysis.attention.{unused}", lambda *_: []
        )
    (figure,) = attention_figures(run)
    expected = attention_entropy(weights, mask)
    np.testing.assert_allclose(figure.values, [expected], rtol=1e-9)


def test_each_word_is_aligned_with_what_the_heads_attend_to_most():
    weights = np.zeros((2, 2, 3, 4))
    weights[0, 0, [0, 1, 2], [1, 0, 3]] = 0.6
    weights[0, 1, :, 2] = 0.4  # less than the other head's
    weights[1, :, :, 3] = 1.0
    weights[1, :, :, 2] = 0.5
    assert align_by_attention(weights)[0] == [(1, 0), (0, 1), (3, 2)]
    pairs = align_by_attention(
        weights,
        source_mask=[[True] * 4, [True, True, True, False]],
        target_mask=[[True] * 3, [True, False, True]],
    )
    assert pairs[1] == [(2, 0), (2, 2)]


@pytest.mark.parametrize("function", [attention_entropy, align_by_attention])
def test_wrong_shapes_are_refused(function):
    with pytest.raises(ValueError, match="the axes"):
        function(np.ones((2, 3, 4)))
    masks = {"target_mask": [[True] * 9]}
    if function is attention_entropy:
        masks = {"query_mask": [[True] * 9]}
    with pytest.raises(ValueError, match="shape"):
        function(np.ones((1, 1, 3, 4)), **masks)
