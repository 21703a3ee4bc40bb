"""Word translations learned from parallel text by IBM Model 1."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Stands for the empty source word, which every sentence has.
EMPTY_ID = -1
# The prior of a target word to be the translation of no source word, and how
# much links near the diagonal are preferred, of Dyer et al. (2013).
EMPTY_PROBABILITY = 0.08
TENSION = 4.0


@dataclass(frozen=True)
class LexicalTable:
    """Probabilities of target words given a source word.

    Attributes:
        source_ids: Int array `(n,)`; `EMPTY_ID`, -1, for the empty word.
        target_ids: Int array `(n,)`.
        probabilities: Float array `(n,)`; those of a source id sum to 1.
        counts: Float array `(n,)`, how often the source word is expected to
            be translated so in the training text.

    Example:
    >>> table = learn_lexical_table([([7, 8], [4, 5]), ([7], [4])])
    >>> sorted(table.best_targets())
    [(7, 4), (8, 5)]
    """

    source_ids: np.ndarray
    target_ids: np.ndarray
    probabilities: np.ndarray
    counts: np.ndarray

    def best_targets(self, min_count: float = 0.0) -> list[tuple[int, int]]:
        """Returns each source id with its most frequent target id.

        Args:
            min_count: Smallest expected count of a pair to be returned.

        Returns:
            Pairs `(source id, target id)`, by source id.
        """
        order = np.lexsort((self.target_ids, -self.counts, self.source_ids))
        first = np.unique(self.source_ids[order], return_index=True)[1]
        return [
            (int(self.source_ids[n]), int(self.target_ids[n]))
            for n in order[first]
            if self.source_ids[n] != EMPTY_ID and self.counts[n] >= min_count
        ]


def learn_lexical_table(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    iterations: int = 5,
    tension: float | None = None,
) -> LexicalTable:
    """Learns which words are translations of each other.

    IBM Model 1 (Brown et al., 1993, Section 4.2), by expectation maximization:
    each target word is the translation of one source word of its sentence, or
    of the empty word, whatever their places. With a `tension` words at like
    places of their sentences are preferred, by the diagonal prior of Dyer et
    al. (2013, Section 2). It starts with equal probabilities; the result does
    not depend on anything random.

    Args:
        pairs: Ids of each source and target sentence, without special ids.
        iterations: Number of iterations.
        tension: How much links near the diagonal are preferred; each pair must
            then have a source word.

    Returns:
        The table of all pairs of words that occur in a common sentence pair.

    Raises:
        ValueError: if no pair has a target word.

    Example:
    >>> table = learn_lexical_table([([1, 2], [5, 6]), ([1], [5])])
    >>> best = {s: t for s, t in table.best_targets()}
    >>> best
    {1: 5, 2: 6}
    """
    sources, targets, words, priors = [], [], [], []
    num_words = 0
    for source, target in pairs:
        source = np.array([EMPTY_ID, *source], "int64")
        target = np.asarray(target, "int64")
        # All pairs of words, target by target.
        sources.append(np.tile(source, len(target)))
        targets.append(np.repeat(target, len(source)))
        numbers = np.arange(num_words, num_words + len(target))
        words.append(np.repeat(numbers, len(source)))
        if tension is not None:
            prior = _diagonal_prior(len(source) - 1, len(target), tension)
            priors.append(prior.T.ravel())
        num_words += len(target)
    if not num_words:
        raise ValueError("`pairs` must have a target word. Received: none.")
    word = np.concatenate(words)
    size = int(max(ids.max() for ids in targets if len(ids))) + 1
    keys = (np.concatenate(sources) - EMPTY_ID) * size + np.concatenate(targets)
    keys, place = np.unique(keys, return_inverse=True)
    source_ids, target_ids = keys // size + EMPTY_ID, keys % size
    _, source_place = np.unique(source_ids, return_inverse=True)
    prior = np.concatenate(priors) if priors else 1.0
    counts = np.ones(len(keys))
    for _ in range(iterations):
        probabilities = _normalize(counts, source_place)
        expected = probabilities[place] * prior
        expected /= np.bincount(word, expected)[word]
        counts = np.bincount(place, expected, len(keys))
    return LexicalTable(
        source_ids, target_ids, _normalize(counts, source_place), counts
    )


def _diagonal_prior(source_length, target_length, tension):
    """The prior of a pair: `(source words + 1, target words)`, float64.

    The first row is that of the empty word; columns sum to 1.
    """
    source = np.arange(1, source_length + 1)[:, None] / source_length
    target = np.arange(1, target_length + 1)[None] / target_length
    near = np.exp(-tension * np.abs(source - target))
    near *= (1.0 - EMPTY_PROBABILITY) / near.sum(0)
    return np.concatenate(
        [np.full((1, target_length), EMPTY_PROBABILITY), near]
    )


def _normalize(counts, source_place):
    """Divides counts by the sum over all targets of their source."""
    return counts / np.bincount(source_place, counts)[source_place]
