"""Finds the pairs that a heavier corpus, listed later, has too."""

from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.preparation.text_filters import SeenHashes


class HeavierPairs:
    """The pairs of corpora that weigh more than one before them.

    A pair that occurs in several corpora counts for the one with the largest
    weight. The corpora are read in their order, so those that are heavier than
    an earlier one are read before that, for the hashes of their pairs.

    Example:
    >>> light = CorpusFiles("light", "a.en", "a.de")
    >>> heavy = CorpusFiles("heavy", "b.en", "b.de", weight=10.0)
    >>> pairs = HeavierPairs([light, heavy])
    >>> [corpus.name for corpus in pairs.corpora]
    ['heavy']
    >>> pairs.add(heavy, np.array([3], "uint64"))
    >>> pairs.contain(light, np.array([3, 4], "uint64")).tolist()
    [True, False]
    """

    def __init__(self, corpora: Sequence[CorpusFiles]):
        self.corpora = [
            corpus
            for number, corpus in enumerate(corpora)
            if any(corpus.weight > c.weight for c in corpora[:number])
        ]
        self._seen = {corpus.weight: SeenHashes() for corpus in self.corpora}

    def add(self, corpus: CorpusFiles, hashes: np.ndarray):
        """Notes the uint64 hashes of pairs of a corpus."""
        self._seen[corpus.weight].add(hashes)

    def contain(self, corpus: CorpusFiles, hashes: np.ndarray) -> np.ndarray:
        """Returns for each pair of a corpus whether a heavier one has it."""
        contained = np.zeros(len(hashes), bool)
        for weight, seen in self._seen.items():
            if weight > corpus.weight:
                contained |= seen.contains(hashes)
        return contained
