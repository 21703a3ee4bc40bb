"""Probabilities that two words of a sentence pair are translations."""

from dataclasses import dataclass

import numpy as np
from keras import ops

from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


@dataclass(frozen=True, eq=False)
class TranslationTable:
    """The most probable translations of each word of one language.

    Args:
        ids: int32 array `(V, K)`. Translations of each word; -1 for none.
        probabilities: float32 array `(V, K)` of these.
        empty: float32 array `(W,)`. Probability of each word of the other
            language where no word gave rise to it.

    Example:
    >>> table = TranslationTable(np.array([[1]]), np.ones((1, 1)), np.zeros(2))
    >>> table.ids.shape
    (1, 1)
    """

    ids: np.ndarray
    probabilities: np.ndarray
    empty: np.ndarray


@dataclass(frozen=True, eq=False)
class AlignmentModel:
    """Aligns the words of sentence pairs by a statistical model.

    In each direction, a word y at position j of a sentence of n words is the
    translation of the word x at position i of m words with the probability

        p(i | j) = t(y | x_i) (1 - p_0) d(i, j) / Z
        d(i, j) ~ exp(-tension |i/m - j/n|), and sums to 1 over i
        Z = t(y | empty) p_0 + sum_i t(y | x_i) (1 - p_0) d(i, j)

    IBM Model 1 with the diagonal prior of Dyer et al. (2013, Section 2). The
    posteriors of both directions are multiplied (Liang et al., 2006, Section
    3.3), so that a link counts as far as both agree on it.

    `training.learn_alignment_model` learns the tables.
    Differs from the papers: both directions are learned alone, and t is known
    for the most probable translations only.

    Args:
        forward: `TranslationTable` of target words given a source word.
        backward: `TranslationTable` of source words given a target word.
        tension: float. How much a link near the diagonal is preferred.
            Defaults to `4.0`.
        empty_probability: float. Prior p_0 of a word to be the translation of
            no word. Defaults to `0.08`.
        mark: int. Id of the mark between the sentences of a context. Only the
            words after the last one are then linked, and places are counted
            from there. Defaults to `None`: all words are linked.

    Example:
    >>> table = TranslationTable(
    ...     np.array([[-1], [-1], [-1], [-1], [5], [4]], "int32"),
    ...     np.ones((6, 1), "float32"),
    ...     np.zeros(6, "float32"),
    ... )
    >>> alignments = AlignmentModel(table, table)
    >>> links = alignments.posteriors(np.array([[4, 5, 3]]), np.array([[4, 5]]))
    >>> np.asarray(links).tolist()
    [[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]]

    Reference:
        - [Dyer et al., 2013](https://aclanthology.org/N13-1073).
        - [Liang et al., 2006](https://aclanthology.org/N06-1014).
    """

    forward: TranslationTable
    backward: TranslationTable
    tension: float = 4.0
    empty_probability: float = 0.08
    mark: int | None = None

    def posteriors(self, source_ids, labels):
        """Computes the probability of each link.

        Args:
            source_ids: int tensor `(B, S)`; 0 is padding.
            labels: int tensor `(B, T)`; 0 is padding.

        Returns:
            Float32 tensor `(B, T, S)`. A row sums to at most 1, and to 0 at
            padding and the end token.
        """
        if self.mark is not None:
            is_mark = ops.equal(source_ids, self.mark)
            marks = ops.cumsum(ops.cast(is_mark, "float32"), axis=1)
            is_last = ops.equal(marks, marks[:, -1:]) & ~is_mark
            source_ids = ops.where(is_last, source_ids, PADDING_ID)
        target = self._one_direction(self.forward, source_ids, labels)
        source = self._one_direction(self.backward, labels, source_ids)
        return target * ops.transpose(source, (0, 2, 1))

    def _one_direction(self, table, given, words):
        """Posteriors `(B, W, G)` of each word given those of the other side."""
        given_real, real = _is_word(given), _is_word(words)
        ids = ops.expand_dims(ops.take(table.ids, given, axis=0), 1)
        found = ops.equal(ids, ops.reshape(words, (*ops.shape(words), 1, 1)))
        known = ops.expand_dims(ops.take(table.probabilities, given, axis=0), 1)
        # (B, W, G, K): at most one of the K translations is the word.
        probability = ops.sum(ops.where(found, known, 0.0), axis=-1)
        pairs = ops.expand_dims(real, 2) & ops.expand_dims(given_real, 1)
        distance = ops.expand_dims(_places(real), 2) - ops.expand_dims(
            _places(given_real), 1
        )
        near = ops.where(pairs, ops.exp(-self.tension * ops.abs(distance)), 0.0)
        near = near * (1.0 - self.empty_probability) / _not_zero(_sum(near))
        joint = probability * near
        empty = self.empty_probability * ops.take(table.empty, words, axis=0)
        return joint / _not_zero(_sum(joint) + ops.expand_dims(empty, 2))


def _is_word(ids):
    special = (PADDING_ID, BEGIN_ID, END_ID)
    is_word = ops.not_equal(ids, special[0])
    for number in special[1:]:
        is_word = is_word & ops.not_equal(ids, number)
    return is_word


def _places(real):
    """The place of each word in its sentence, in (0, 1]."""
    number = ops.cumsum(ops.cast(real, "float32"), axis=1)
    return number / ops.maximum(number[:, -1:], 1.0)


def _sum(values):
    return ops.sum(values, axis=2, keepdims=True)


def _not_zero(total):
    return ops.where(total > 0.0, total, 1.0)
