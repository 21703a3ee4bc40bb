"""Scores how well the two sides of a pair fit, to find misaligned pairs."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_deepnmt.data.lexical_table import EMPTY_ID, learn_lexical_table

# Translations that are less probable are forgotten, which bounds the table.
_LEAST_PROBABILITY = 1e-4
# The share of a word's probability that does not depend on the other side, so
# that one word without a known translation does not decide.
_UNEXPLAINED = 0.1
# Pairs with more word links are neither learned from nor scored.
MOST_LINKS = 4_000_000


class AlignmentScores:
    """Scores pairs by IBM Model 1, learned from the same text.

    The score of a pair is how much more probable its words are given the other
    side than on their own: the mean of `log(p(word | other side) / p(word))`
    over the words of a side, averaged over both sides. Above 0 the sides
    explain each other; sentences that have nothing to do with each other are
    below it, between `log(0.1)` and 0.

    A pair that the model was learned from does not count as evidence for
    itself: its own expected counts are left out (Brown et al., 1993, Section
    4.2, with one pair less), since every pair explains its rare words.

    `pairs` are the ids of the source and target sentences to learn from; at
    least one has a word on both sides.
    """

    def __init__(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]):
        swapped = [(target, source) for source, target in pairs]
        self._directions = (
            _WordProbabilities(pairs),
            _WordProbabilities(swapped),
        )

    def score(
        self,
        sources: Iterable[Sequence[int]],
        targets: Iterable[Sequence[int]],
        learned: Iterable[bool],
    ) -> np.ndarray:
        """Returns the float64 scores of pairs.

        `learned` says of each pair whether the model was learned from it. Pairs
        of over 4 million word links get the score 0.
        """
        scores = []
        for source, target, own in zip(sources, targets, learned, strict=True):
            if num_links(source, target) > MOST_LINKS:
                scores.append(0.0)
                continue
            forward, backward = self._directions
            both = (
                forward.gain(source, target, own),
                backward.gain(target, source, own),
            )
            scores.append(sum(both) / 2)
        return np.array(scores, "float64")


def num_links(source: Sequence[int], target: Sequence[int]) -> int:
    """Returns the number of word links of a pair, in the larger direction.

    Example:
    >>> num_links([4, 5], [6])
    6
    """
    return (len(source) + 1) * (len(target) + 1)


class _Links(NamedTuple):
    """What is known of a pair: its different words, and their links.

    `repeats` says how often each of `words` occurs, `shares` how large a share
    of the other side each of `given` is. The others are matrices with a row per
    word and a column per given one: the place in the table, whether it is
    there, and the expected number of links.
    """

    given: np.ndarray
    shares: np.ndarray
    words: np.ndarray
    repeats: np.ndarray
    places: np.ndarray
    is_there: np.ndarray
    contribution: np.ndarray


class _WordProbabilities:
    """The probabilities of words given a word of the other side.

    `pairs` are of the ids that are given, and the words that they explain.
    """

    def __init__(self, pairs):
        table = learn_lexical_table(pairs)
        words = np.concatenate([np.asarray(ids, "int64") for _, ids in pairs])
        frequencies = np.bincount(words)
        self._frequency = frequencies / frequencies.sum()
        kept = table.probabilities >= _LEAST_PROBABILITY
        given = table.source_ids[kept] - EMPTY_ID
        # In ascending order, as the table is.
        self._keys = given * len(frequencies) + table.target_ids[kept]
        self._probabilities = table.probabilities[kept]
        # Counted again with these probabilities, since what a pair contributes
        # is subtracted later, exactly.
        self._counts = np.zeros(len(self._keys))
        for pair in pairs:
            found = self._links(*pair)
            if found is not None:
                places = found.places[found.is_there]
                self._counts[places] += found.contribution[found.is_there]
        self._totals = np.bincount(given, self._counts)

    def gain(self, given, words, own: bool) -> float:
        """Returns the mean gain in log-probability by the other side.

        Words that the text did not have gain nothing. With `own`, what this
        pair contributed to the counts is subtracted first.
        """
        found = self._links(given, words)
        if found is None:
            return 0.0
        counts = np.where(found.is_there, self._counts[found.places], 0.0)
        totals = self._totals[found.given]
        if own:
            counts = np.maximum(counts - found.contribution, 0.0)
            totals = totals - found.contribution.sum(axis=0)
        # One count more: a word may always have another translation.
        explained = counts @ (found.shares / (np.maximum(totals, 0.0) + 1.0))
        frequency = self._frequency[found.words]
        gains = np.log(
            (1 - _UNEXPLAINED) * explained / frequency + _UNEXPLAINED
        )
        return float(found.repeats @ gains / len(words))

    def _links(self, given, words) -> "_Links | None":
        """Looks up the words of a pair; `None` if none is known."""
        given, times = np.unique(
            np.array([EMPTY_ID, *given], "int64") - EMPTY_ID,
            return_counts=True,
        )
        shares = times / times.sum()
        known = given < self._keys[-1] // len(self._frequency) + 1
        given, shares = given[known], shares[known]
        words = np.asarray(words, "int64")
        words = words[words < len(self._frequency)]
        words, repeats = np.unique(words, return_counts=True)
        seen = self._frequency[words] > 0
        words, repeats = words[seen], repeats[seen]
        if not len(words):
            return None
        keys = given * len(self._frequency) + words[:, None]
        places = np.searchsorted(self._keys, keys)
        places[places == len(self._keys)] = 0
        is_there = self._keys[places] == keys
        joint = shares * np.where(is_there, self._probabilities[places], 0.0)
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), 1e-30)
        joint *= repeats[:, None]
        return _Links(given, shares, words, repeats, places, is_there, joint)
