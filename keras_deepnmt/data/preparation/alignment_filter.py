"""Leaves out training pairs whose sides do not belong together."""

import itertools
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.preparation.alignment_scores import (
    MOST_LINKS,
    AlignmentScores,
    num_links,
)
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.data.shortlists import MAX_LINKS
from keras_deepnmt.data.tokenizers import Tokenizer


class AlignmentFilter:
    """Finds the pairs whose score in `AlignmentScores` is too low.

    The scores are learned from the pairs in every `distance`-th row of a spool,
    so that all corpora take part. The distance is the smallest power of two
    with which they have at most `max_links` word links, which bounds the
    memory.

    The spool has the training pairs that filters kept. A pair fits if its score
    is at least `min_score`.
    """

    def __init__(
        self,
        spool: Spool,
        tokenizers: tuple[Tokenizer, Tokenizer],
        min_score: float,
        max_links: int = MAX_LINKS,
    ):
        self.distance, pairs = _spread_pairs(spool, tokenizers, max_links)
        self._min_score = min_score
        self._scores = AlignmentScores(pairs) if pairs else None

    def misaligned(
        self,
        rows: np.ndarray,
        sources: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Returns which pairs do not fit, from their rows and ids.

        The ids are those of the texts of the spool.
        """
        if self._scores is None:
            return np.zeros(len(rows), bool)
        learned = (rows % self.distance == 0).tolist()
        scores = self._scores.score(sources, targets, learned)
        return scores < self._min_score


def _spread_pairs(spool, tokenizers, max_links):
    """Returns the distance between the rows, and the pairs in these rows."""
    distance, links = 1, 0
    pairs: dict[int, tuple] = {}
    start = 0
    for block in spool.blocks():
        first = -start % distance
        chosen = slice(first, None, distance)
        sides = [
            tokenizer.encode(side[chosen])
            for tokenizer, side in zip(tokenizers, block, strict=True)
        ]
        rows = itertools.count(start + first, distance)
        for row, *pair in zip(rows, *sides, strict=False):
            if min(map(len, pair)) and num_links(*pair) <= MOST_LINKS:
                pairs[row] = tuple(pair)
                links += num_links(*pair)
        start += len(block[0])
        while len(pairs) > 1 and links > max_links:
            distance *= 2
            pairs = {r: p for r, p in pairs.items() if r % distance == 0}
            links = sum(num_links(*pair) for pair in pairs.values())
    return distance, list(pairs.values())
