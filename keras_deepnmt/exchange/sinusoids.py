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

    Args:
        length: number of positions.
        width: even number of channels D.
        order: `"interleaved"` for a sine and a cosine in turn, `"halves"` for
            all sines and then all cosines.

    Example:
    >>> sinusoids(1, 4, "interleaved").tolist()
    [[0.0, 1.0, 0.0, 1.0]]
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

    A model computes the same for any order of its D channels. In that of this
    package all sines come first.

    Args:
        weights: the weights of a `Transformer` by path.
        width: D.

    Example:
    >>> weights = {"encoder_norm/gamma": np.arange(4)}
    >>> with_sines_first(weights, 4)["encoder_norm/gamma"].tolist()
    [0, 2, 1, 3]
    """
    order = np.arange(width).reshape(-1, 2).T.reshape(-1)
    found = dict(weights)
    for path, value in weights.items():
        for end, axis in _WIDTH_AXES.items():
            if path.endswith(end) and value.shape[axis] == width:
                found[path] = np.take(value, order, axis)
    return found
