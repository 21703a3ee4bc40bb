"""Positions of sines and cosines, in the orders that toolkits have."""

from collections.abc import Mapping

import numpy as np

ORDERS = ("interleaved", "halves")
_LONGEST = 10_000.0
# Axes of the model's width, by the end of a weight's path.
_WIDTH_AXES = {
    "/embeddings": 1,
    "/reverse_embeddings": 0,
    "/query/kernel": 0,
    "/key/kernel": 0,
    "/value/kernel": 0,
    "/intermediate/kernel": 0,
    "/output/kernel": 1,
    "/output/bias": 0,
    "/gamma": 0,
    "/beta": 0,
}


def position_encoding(width: int) -> dict:
    """Returns the argument of `Transformer` for waves of r^(2 i / D).

    r is 10,000. The longest wave of this package is r^(1 - 2 / D) then.
    """
    half = width // 2
    longest = _LONGEST ** ((half - 1) / half)
    return {"SinusoidalPositionEncoding": {"max_wavelength": longest}}


def sinusoids(length: int, width: int, order: str) -> np.ndarray:
    """Returns the vectors `(length, width)` of the first positions.

    The order `"interleaved"` is a sine and a cosine in turn, `"halves"` all
    sines and then all cosines. The width D is even.
    """
    frequencies = _LONGEST ** (-2.0 * np.arange(width // 2) / width)
    angles = np.arange(length)[:, None] * frequencies
    waves = [np.sin(angles), np.cos(angles)]
    if order == "interleaved":
        return np.stack(waves, axis=-1).reshape(length, width)
    return np.concatenate(waves, axis=-1)


def with_sines_first(
    weights: Mapping[str, np.ndarray], width: int
) -> dict[str, np.ndarray]:
    """Reorders the channels of a model with interleaved positions.

    A model computes the same for any order of its D channels, `width`. In that
    of this package all sines come first.
    """
    order = np.arange(width).reshape(-1, 2).T.reshape(-1)
    found = dict(weights)
    for path, value in weights.items():
        for end, axis in _WIDTH_AXES.items():
            if path.endswith(end) and value.shape[axis] == width:
                found[path] = np.take(value, order, axis)
    return found
