"""Counts held-out pairs that also occur in other splits."""

from collections.abc import Iterable

import numpy as np

from keras_deepnmt.data.preparation.text_filters import compared_text, hash_text


def hash_pairs(
    sources: Iterable[str], targets: Iterable[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the uint64 hashes of pairs and of their sources, as compared."""
    sources = list(map(compared_text, sources))
    targets = map(compared_text, targets)
    pairs = [hash_text(*pair) for pair in zip(sources, targets, strict=True)]
    source_hashes = [hash_text(source) for source in sources]
    return np.array(pairs, "uint64"), np.array(source_hashes, "uint64")


def hash_unordered(pair: tuple[str, str]) -> int:
    """Returns the hash of a pair that it also has in the other direction."""
    return hash_text(*sorted(map(compared_text, pair)))


class _HashMatches:
    """Records which of some hashes occur in other data."""

    def __init__(self, hashes: np.ndarray):
        self.keys, self.rows = np.unique(hashes, return_inverse=True)
        self.matched = np.zeros(len(self.keys), bool)

    def add(self, hashes: np.ndarray):
        if len(self.keys):
            places = np.searchsorted(self.keys, hashes)
            places[places == len(self.keys)] = 0
            self.matched[places[self.keys[places] == hashes]] = True

    def count(self) -> int:
        return int(self.matched[self.rows].sum())


class LeakageCounter:
    """Counts the rows of a held-out split that occur in other text.

    `pairs` and `sources` are the hashes of the split, as `hash_pairs` returns
    them.
    """

    def __init__(self, pairs: np.ndarray, sources: np.ndarray):
        self._pairs = _HashMatches(pairs)
        self._sources = _HashMatches(sources)

    def add(self, pairs: np.ndarray, sources: np.ndarray):
        """Compares a block of the other text, given by its hashes."""
        self._pairs.add(pairs)
        self._sources.add(sources)

    @property
    def pairs(self) -> int:
        """Number of rows whose pair occurs in the other text."""
        return self._pairs.count()

    @property
    def sources(self) -> int:
        """Number of rows whose source occurs in the other text."""
        return self._sources.count()
