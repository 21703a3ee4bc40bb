"""Checks that more than one property needs."""

import catalog
import numpy as np
import pytest


def layers_in_turn(place):
    """All layers, by default the first or the second of each two."""
    return [
        pytest.param(
            entry,
            id=catalog.identify(entry),
            marks=() if number % 2 == place else pytest.mark.thorough,
        )
        for number, entry in enumerate(catalog.LAYERS)
    ]


def assert_every_weight_moved(before, model):
    """Every weight is finite; those that train have changed."""
    for old, weight in zip(before, model.weights, strict=True):
        new = np.asarray(weight)
        assert np.all(np.isfinite(new)), weight.path
        assert np.any(new != old) == weight.trainable, weight.path
