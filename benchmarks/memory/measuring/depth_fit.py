"""How a quantity grows with the number of layers: two fits."""

import math

import numpy as np


def growth_exponent(depths, values):
    """Fits `value = c depth^e`: the slope of a line through the logarithms.

    Args:
        depths: list of numbers above zero, at least two different ones.
        values: list of numbers above zero, as many.

    Returns:
        Float, e. Below 1 also where a constant part hides what grows.
    """
    slope, _ = np.polyfit(np.log(depths), np.log(values), 1)
    return float(slope)


def growth_terms(depths, values):
    """Fits `value = constant + linear depth + quadratic depth^2`.

    Args:
        depths: list of numbers, at least three different ones.
        values: list of numbers, as many.

    Returns:
        Tuple of three floats, constant, linear and quadratic; all `nan` for
        fewer depths.
    """
    if len(set(depths)) < 3:
        return (math.nan,) * 3
    quadratic, linear, constant = np.polyfit(depths, values, 2)
    return float(constant), float(linear), float(quadratic)
