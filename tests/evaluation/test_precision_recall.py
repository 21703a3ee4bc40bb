"""What must be true of the F score: it gives the published ones from their
precision and recall, lies between the two, and refuses negative numbers."""

import pytest

from keras_deepnmt.evaluation import f_score

# Liu et al. (2021), CoNLL-2014: precision, recall, F0.5 as printed, and as
# their precision and recall give it.
PUBLISHED = [
    (65.5, 33.1, 54.8, 54.8),
    (64.7, 33.2, 54.3, 54.4),
    (67.7, 31.9, 55.3, 55.3),
    (67.0, 34.4, 56.3, 56.3),
    (66.8, 35.0, 56.6, 56.5),
]


@pytest.mark.parametrize("precision, recall, printed, computed", PUBLISHED)
def test_gives_the_published_numbers(precision, recall, printed, computed):
    found = f_score(precision, recall)
    assert found == pytest.approx(printed, abs=0.1)
    assert round(found, 1) == computed


def test_beta_weighs_recall():
    assert f_score(0.6, 0.3, beta=0.0) == pytest.approx(0.6)
    assert f_score(0.6, 0.3, beta=1.0) == pytest.approx(0.4)
    assert f_score(0.6, 0.3, beta=1e6) == pytest.approx(0.3)


def test_nothing_found_scores_nothing():
    assert f_score(0.0, 0.0) == 0.0
    assert f_score(0.0, 0.5) == 0.0


def test_refuses_negative_numbers():
    with pytest.raises(ValueError, match="recall=-1"):
        f_score(1, -1)
