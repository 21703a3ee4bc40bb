"""Means over seeds with intervals."""

import math
import statistics

# 0.975 quantiles of Student's t distribution with 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def mean_and_interval(values):
    """Returns the mean, and half the width of its 95 % interval.

    The interval is Student's, and `nan` for a single value. For more than ten
    values the quantile of ten is used, which is slightly too wide.
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan
    quantile = _STUDENT[min(len(values) - 1, len(_STUDENT)) - 1]
    deviation = statistics.stdev(values)
    return mean, quantile * deviation / math.sqrt(len(values))
