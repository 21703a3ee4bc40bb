"""Normalises text and decides which training pairs are kept."""

import hashlib
import unicodedata
from dataclasses import dataclass

import numpy as np

FILTERS = ("empty", "identical", "length", "ratio", "duplicate")


def normalize_text(text: str) -> str:
    """Brings text to NFKC with single spaces and none at the ends.

    Args:
        text: Any text of one line.

    Returns:
        The normalised text.

    Example:
    >>> normalize_text("  eﬃcient\u3000word ")
    'efficient word'
    """
    return " ".join(unicodedata.normalize("NFKC", text).split())


def text_hash(*texts: str) -> int:
    """Hashes normalised texts to 64 bits, the same in every process.

    Args:
        *texts: One text, or the two sides of a pair.

    Returns:
        An unsigned 64-bit number.

    Example:
    >>> text_hash("a", "b") == text_hash("a b")
    False
    """
    data = "\n".join(texts).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


@dataclass(frozen=True)
class PairFilter:
    """Refuses pairs that teach a translator nothing or something wrong.

    Lengths are counted in words (between white space), before any tokenizer.

    Args:
        min_length: Fewest words of either side.
        max_length: Most words of either side.
        max_ratio: Most words of one side per word of the other.
        drop_identical: Whether to refuse pairs whose sides are equal.

    Example:
    >>> PairFilter(max_ratio=2.0).reason("one two three", "eins")
    'ratio'
    """

    min_length: int = 1
    max_length: int = 250
    max_ratio: float = 9.0
    drop_identical: bool = True

    def reason(self, source: str, target: str) -> str | None:
        """Names the first rule a pair breaks.

        Args:
            source: Normalised source text.
            target: Normalised target text.

        Returns:
            `"empty"`, `"identical"`, `"length"`, `"ratio"`, or `None` for a
            pair to keep.
        """
        if not source or not target:
            return "empty"
        if self.drop_identical and source == target:
            return "identical"
        # Normalised text has single spaces.
        shorter, longer = sorted((source.count(" ") + 1, target.count(" ") + 1))
        if shorter < self.min_length or longer > self.max_length:
            return "length"
        return "ratio" if longer > self.max_ratio * shorter else None


class SeenHashes:
    """A growing set of 64-bit hashes in sorted arrays.

    Blocks are merged like the digits of a binary number, so that a hash takes
    8 bytes, and 16 for the moment of the largest merge; a Python set would
    take 60 or more.

    Example:
    >>> seen = SeenHashes()
    >>> seen.add(np.array([3, 5, 3], "uint64")).tolist()
    [True, True, False]
    """

    def __init__(self):
        self._levels: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(len(level) for level in self._levels)

    def contains(self, hashes: np.ndarray) -> np.ndarray:
        """Tells which hashes are in the set.

        Args:
            hashes: uint64 array `(n,)`.

        Returns:
            Bool array `(n,)`.
        """
        found = np.zeros(len(hashes), bool)
        for level in self._levels:
            places = np.searchsorted(level, hashes)
            places[places == len(level)] = 0
            found |= level[places] == hashes
        return found

    def add(self, hashes: np.ndarray) -> np.ndarray:
        """Adds hashes and tells which were new.

        Args:
            hashes: uint64 array `(n,)`.

        Returns:
            Bool array `(n,)`, true at the first occurrence of a new hash.
        """
        new = np.zeros(len(hashes), bool)
        new[np.unique(hashes, return_index=True)[1]] = True
        new &= ~self.contains(hashes)
        if new.any():
            self._levels.append(np.sort(hashes[new]))
        while len(self._levels) > 1 and len(self._levels[-2]) <= 2 * len(
            self._levels[-1]
        ):
            merged = np.concatenate(self._levels[-2:])
            del self._levels[-2:]
            merged.sort()
            self._levels.append(merged)
        return new
