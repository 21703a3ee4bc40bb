"""Positions that another toolkit stores as tables of vectors."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_deepnmt.exchange.sinusoids import (
    position_encoding,
    sinusoids,
    with_sines_first,
)

# Of angles in float32, which are as large as the position, and of values that
# were rounded to float16.
_TOLERANCE = 1e-6
_ROUNDING = 2.0**-11
_NAMES = ("position_encoding", "target_position_encoding")


def with_positions(
    weights: Mapping[str, np.ndarray], source: np.ndarray, target: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns weights and arguments of a `Transformer` with these positions.

    `source` and `target` are the tables `(M, D)` of encoder and decoder. Tables
    of sines and cosines become this package's waves, and the channels of the
    weights are reordered for them if need be. Other tables become learned
    positions; the shorter of two has its last vector once more at each further
    position.

    Example:
    >>> weights, arguments = with_positions({}, np.eye(4), np.eye(4))
    >>> weights["position_encoding/table/embeddings"].shape
    (4, 4)
    """
    length, width = max(len(source), len(target)), source.shape[1]
    limit = {"max_length": length}
    if width % 2 == 0 and np.array_equal(source, target):
        if is_near(source, waves(length, width)):
            return dict(weights), {"position_encoding": "sinusoidal"} | limit
        for order in ("halves", "interleaved"):
            if is_near(source, sinusoids(length, width, order)):
                if order == "interleaved":
                    weights = with_sines_first(weights, width)
                given = {"position_encoding": position_encoding(width)}
                return dict(weights), given | limit
    tables = [
        np.pad(table, ((0, length - len(table)), (0, 0)), mode="edge")
        for table in (source, target)
    ]
    is_shared = np.array_equal(*tables)
    learned = {
        f"{name}/table/embeddings": table
        for name, table in zip(_NAMES, tables[: 2 - is_shared], strict=False)
    }
    layer = {"max_length": length, "add_to_inputs": True}
    return weights | learned, limit | {
        "position_encoding": {"LearnedPositionEmbedding": layer},
        "share_position_encoding": is_shared,
    }


def waves(length: int, width: int, first: int = 0) -> np.ndarray:
    """Returns the waves of `SinusoidalPositionEncoding`, r^(i / (D / 2 - 1)).

    They are those of the positions from `first` on, `(length, width)`: all
    sines, then all cosines. The width D is even.
    """
    exponents = np.arange(width // 2) / max(width // 2 - 1, 1)
    positions = np.arange(first, first + length)[:, None]
    angles = positions * 10_000.0**-exponents
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def is_near(table: np.ndarray, expected: np.ndarray) -> bool:
    """Whether a table of positions is another one, but for rounding.

    The arrays are `(length, D)`, `expected` with exact values. In float32 the
    rounding of an angle grows with the position.
    """
    allowed = _TOLERANCE * (1 + np.arange(len(table)))
    if np.array_equal(table, table.astype("float16")):
        allowed += _ROUNDING
    return bool((np.abs(table - expected).max(axis=1) <= allowed).all())
