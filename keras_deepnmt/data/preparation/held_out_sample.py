"""Draws the pairs that are held out of the training text."""

import numpy as np


class HeldOutSample:
    """Draws pairs uniformly from a stream by reservoir sampling."""

    def __init__(self, pairs: int, seed: int):
        self._random = np.random.default_rng(seed)
        self._rows = np.zeros(pairs, "int64")
        self._texts = [None] * pairs
        self._seen = 0

    def add(self, raw_pairs: list[tuple[str, str]]):
        """Adds the next unprocessed pairs of the stream."""
        size = len(self._texts)
        if not size:
            return
        rows = np.arange(self._seen, self._seen + len(raw_pairs))
        places = np.where(rows < size, rows, self._random.integers(0, rows + 1))
        for number in np.flatnonzero(places < size).tolist():
            self._rows[places[number]] = rows[number]
            self._texts[places[number]] = raw_pairs[number]
        self._seen += len(raw_pairs)

    def draw(self) -> tuple[np.ndarray, list[tuple[str, str]]]:
        """Returns the drawn row numbers, in random order, and their texts."""
        count = min(self._seen, len(self._texts))
        order = self._random.permutation(count)
        return self._rows[order], [self._texts[i] for i in order.tolist()]
