"""What must be true of means over seeds and their intervals.

* mean, standard deviation and interval are those of Student's t distribution
* the interval has its probability, for few seeds as well
* a single seed has no interval
"""

import math

import numpy as np
import pytest
import scipy.stats

from keras_deepnmt.evaluation import seed_statistics


@pytest.mark.parametrize("number", [2, 3, 4, 5, 11, 40])
def test_the_interval_is_that_of_student(number):
    values = np.random.default_rng(number).normal(30, 2, number).tolist()
    found = seed_statistics(values)
    low, high = scipy.stats.t.interval(
        0.95, number - 1, np.mean(values), scipy.stats.sem(values)
    )
    assert found.mean == pytest.approx(np.mean(values))
    assert found.deviation == pytest.approx(np.std(values, ddof=1))
    assert found.mean - found.interval == pytest.approx(low, rel=1e-9)
    assert found.mean + found.interval == pytest.approx(high, rel=1e-9)
    assert found.number == number


def test_three_seeds_by_hand():
    # Deviation 1, three values: 4.303 / sqrt(3).
    found = seed_statistics([1.0, 2.0, 3.0])
    assert (found.mean, found.deviation) == (2.0, 1.0)
    assert found.interval == pytest.approx(4.303 / 3**0.5, rel=1e-4)


def test_the_interval_of_three_seeds_holds_the_mean_95_times_of_100():
    draws = np.random.default_rng(0).normal(0.0, 1.0, (4_000, 3)).tolist()
    found = [seed_statistics(values) for values in draws]
    held = np.mean([abs(each.mean) < each.interval for each in found])
    assert abs(held - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4_000)


def test_a_single_seed_has_no_interval():
    found = seed_statistics([5.0])
    assert found.mean == 5.0 and found.number == 1
    assert math.isnan(found.deviation) and math.isnan(found.interval)
    with pytest.raises(ValueError, match="Received: none"):
        seed_statistics([])
