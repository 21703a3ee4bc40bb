"""Two fits of how a quantity grows with the number of layers."""

import math

import numpy as np


def growth_exponent(depths, values):
    """Fits `value = c depth^e`; returns e.

    It is the slope of a line through the logarithms, so all numbers must be
    above zero. A constant part in the values makes e smaller, even below 1.
    """
    slope, _ = np.polyfit(np.log(depths), np.log(values), 1)
    return float(slope)


def growth_terms(depths, values):
    """Fits `value = constant + linear depth + quadratic depth^2`.

    Returns the three coefficients; all are `nan` for fewer than three different
    depths.
    """
    if len(set(depths)) < 3:
        return (math.nan,) * 3
    quadratic, linear, constant = np.polyfit(depths, values, 2)
    return float(constant), float(linear), float(quadratic)
