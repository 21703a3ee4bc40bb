"""Mean, standard deviation and interval of scores over seeds."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_LEVEL = 0.95


@dataclass(frozen=True)
class SeedStatistics:
    """What runs with different seeds tell about their recipe.

    Attributes:
        mean: Mean of the scores.
        deviation: Their standard deviation, with n - 1 in the denominator;
            `nan` for a single score.
        interval: Half the width of the 95 % interval of the mean, by Student's
            t distribution; `nan` for a single score.
        number: Number of scores, n.
    """

    mean: float
    deviation: float
    interval: float
    number: int


def seed_statistics(values: Sequence[float]) -> SeedStatistics:
    """Describes the scores of a recipe, one for each seed.

    With the standard deviation s of n scores the interval is

        mean ± t s / √n,

    where t is the 0.975 quantile of Student's t distribution with n - 1
    degrees of freedom: 12.7 for two seeds, 4.3 for three. It covers the
    variation between seeds, on the same test sentences. For two recipes, give
    the differences of the scores with the same seed.

    Args:
        values: A score for each seed, or a difference of two.

    Returns:
        Mean, standard deviation, interval and number.

    Raises:
        ValueError: if there is no value.

    Example:
    >>> found = seed_statistics([33.1, 34.0, 33.4])
    >>> f"{found.mean:.2f} ± {found.interval:.2f}"
    '33.50 ± 1.14'
    """
    number = len(values)
    if not number:
        raise ValueError("`values` must have a score. Received: none.")
    mean = statistics.fmean(values)
    if number == 1:
        return SeedStatistics(mean, math.nan, math.nan, 1)
    deviation = statistics.stdev(values)
    half = student_quantile(number - 1) * deviation / math.sqrt(number)
    return SeedStatistics(mean, deviation, half, number)


def student_quantile(degrees: int) -> float:
    """Returns the t that |T| exceeds with a probability of 5 %.

    `degrees` are the degrees of freedom of Student's t distribution.
    """
    # The probability rises with t, and so does t with the angle.
    low, high = 0.0, math.pi / 2
    while high - low > 1e-13:
        middle = (low + high) / 2
        if _probability(middle, degrees) < _LEVEL:
            low = middle
        else:
            high = middle
    return math.tan(low) * math.sqrt(degrees)


def _probability(angle, degrees):
    """P(|T| < t) with t = √degrees tan(angle).

    Abramowitz and Stegun (1964), equations 26.7.3 and 26.7.4.
    """
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for place in range(2 + odd, degrees + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (place - 1) / place
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
