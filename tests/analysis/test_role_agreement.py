"""What must be true of the V-measure of roles and labels.

* equal groupings agree whatever their names, independent ones do not
* it is the harmonic mean of homogeneity and completeness
* shuffled clusters agree a little, the less the more items there are
"""

import math

import pytest

from keras_deepnmt.analysis import v_measure, v_measure_by_chance


@pytest.mark.parametrize(
    "classes, clusters, expected",
    [
        # The same grouping under other names, and one cluster for all.
        ("aabb", "1100", 1.0),
        ("aabb", "0000", 0.0),
        ("aaaa", "0123", 0.0),
        ("aaaa", "0000", 1.0),
        # h = 1, c = 1 / 1.5; then h = 1, c = 1 / 2.
        ("aabb", "0012", 0.8),
        ("aabb", "0123", 2 / 3),
        # Independent of each other.
        ("aabb", "0101", 0.0),
    ],
)
def test_v_measure_by_hand(classes, clusters, expected):
    found = v_measure(classes, clusters)
    assert found == pytest.approx(expected, abs=1e-12)


def test_v_measure_is_the_mean_of_homogeneity_and_completeness():
    classes, clusters = "aaaabbbbcc", "0012011122"

    def entropy(*groups):
        items = list(zip(*groups, strict=True))
        shares = [items.count(item) / len(items) for item in set(items)]
        return -sum(share * math.log(share) for share in shares)

    both = entropy(classes, clusters)
    h = 1 - (both - entropy(clusters)) / entropy(classes)
    c = 1 - (both - entropy(classes)) / entropy(clusters)
    expected = 2 * h * c / (h + c)
    assert v_measure(classes, clusters) == pytest.approx(expected)


def test_chance_keeps_the_sizes_and_falls_with_the_number_of_items():
    few = v_measure_by_chance("aab" * 10, "001" * 10)
    many = v_measure_by_chance("aab" * 100, "001" * 100)
    assert v_measure("aab" * 10, "001" * 10) == pytest.approx(1.0)
    assert 0 < many < few < 0.2
    assert v_measure_by_chance("aab" * 10, "000" * 10) == 0.0
