"""What must be true of the masks: True is a real token or a permission,
padding is id 0 and nothing else, and joining is a logical and."""

import numpy as np

from keras_deepnmt import masks


def test_special_ids_are_the_contract():
    ids = (masks.PADDING_ID, masks.UNKNOWN_ID, masks.BEGIN_ID, masks.END_ID)
    assert ids == (0, 1, 2, 3)


def test_only_id_zero_is_padding():
    ids = np.array([[1, 2, 3, 0, 0], [5, 0, 7, 3, 0]], "int32")
    expected = [
        [True, True, True, False, False],
        [True, False, True, True, False],
    ]
    np.testing.assert_array_equal(masks.padding_mask(ids), expected)


def test_the_future_counts_from_the_first_querys_position():
    distances = np.asarray(masks.relative_positions(2, 7, start=3))
    assert distances.tolist() == [
        [-3, -2, -1, 0, 1, 2, 3],
        [-4, -3, -2, -1, 0, 1, 2],
    ]


def test_joined_masks_allow_what_every_mask_allows():
    random = np.random.default_rng(0)
    one, two = random.random((3, 1, 7)) < 0.7, random.random((1, 5, 7)) < 0.7
    merged = np.asarray(masks.merge_attention_masks(one, None, two))
    assert merged.shape == (3, 5, 7)
    for b in range(3):
        for t in range(5):
            for s in range(7):
                assert merged[b, t, s] == (one[b, 0, s] and two[0, t, s])


def test_no_mask_at_all_stays_none():
    assert masks.merge_attention_masks() is None
    assert masks.merge_attention_masks(None) is None
