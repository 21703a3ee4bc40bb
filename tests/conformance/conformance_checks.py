"""Checks that more than one property needs."""

import numpy as np


def assert_every_weight_moved(before, model):
    """Every weight is finite; those that train have changed."""
    for old, weight in zip(before, model.weights, strict=True):
        new = np.asarray(weight)
        assert np.all(np.isfinite(new)), weight.path
        assert np.any(new != old) == weight.trainable, weight.path
