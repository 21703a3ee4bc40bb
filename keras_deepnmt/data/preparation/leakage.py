"""Counts held-out pairs that are training pairs too."""

from collections.abc import Iterable

import numpy as np

from keras_deepnmt.data.preparation.text_filters import text_hash


def pair_hashes(
    sources: Iterable[str], targets: Iterable[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Hashes pairs, and their sources alone.

    Args:
        sources: Normalised sources.
        targets: Their targets.

    Returns:
        Two uint64 arrays: of the pairs, of the sources.

    Example:
    >>> pairs, sources = pair_hashes(["a"], ["b"])
    """
    sources = list(sources)
    pairs = [text_hash(*pair) for pair in zip(sources, targets, strict=True)]
    alone = [text_hash(source) for source in sources]
    return np.array(pairs, "uint64"), np.array(alone, "uint64")


class _Watch:
    """Marks which of some hashes were seen."""

    def __init__(self, hashes: np.ndarray):
        self.keys, self.rows = np.unique(hashes, return_inverse=True)
        self.found = np.zeros(len(self.keys), bool)

    def see(self, hashes: np.ndarray):
        if len(self.keys):
            places = np.searchsorted(self.keys, hashes)
            places[places == len(self.keys)] = 0
            self.found[places[self.keys[places] == hashes]] = True

    def count(self) -> int:
        return int(self.found[self.rows].sum())


class LeakageCounter:
    """Counts the rows of one held-out split that occur in other text.

    Args:
        pairs: uint64 hashes of the split's pairs.
        sources: uint64 hashes of its sources.

    Example:
    >>> counter = LeakageCounter(*pair_hashes(["a", "a"], ["b", "c"]))
    >>> counter.see(*pair_hashes(["a"], ["c"]))
    >>> counter.pairs, counter.sources
    (1, 2)
    """

    def __init__(self, pairs: np.ndarray, sources: np.ndarray):
        self._pairs = _Watch(pairs)
        self._sources = _Watch(sources)

    def see(self, pairs: np.ndarray, sources: np.ndarray):
        """Takes in a block of the other text.

        Args:
            pairs: uint64 hashes of pairs.
            sources: uint64 hashes of their sources.
        """
        self._pairs.see(pairs)
        self._sources.see(sources)

    @property
    def pairs(self) -> int:
        """Rows whose pair occurs in the other text."""
        return self._pairs.count()

    @property
    def sources(self) -> int:
        """Rows whose source occurs in the other text."""
        return self._sources.count()
