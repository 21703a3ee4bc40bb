"""Scores of groups of sentences: by source length, by rarity of words."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keras_deepnmt.data.word_units import split_words
from keras_deepnmt.evaluation.scores import (
    Score,
    check_lengths,
    corpus_scores,
)
from keras_deepnmt.evaluation.word_statistics import word_splitter
from keras_deepnmt.evaluation.word_tokenizers import default_tokenizer

LENGTH_LIMITS = (11, 21, 31, 41, 51)
FREQUENCY_LIMITS = (1, 5, 10, 100, 1_000)


@dataclass(frozen=True)
class SentenceGroup:
    """The sentences with a quantity in the range [first, end), and BLEU.

    Attributes:
        first: The lowest value of the group.
        end: The lowest value above the group; infinite for the last one.
        num_sentences: Number of sentences.
        bleu: Their corpus BLEU.
    """

    first: int
    end: float
    num_sentences: int
    bleu: Score

    @property
    def label(self) -> str:
        """The range, with both ends inside: `"11-20"`."""
        if math.isinf(self.end):
            return f">= {self.first}"
        last = int(self.end) - 1
        return f"{self.first}-{last}" if last > self.first else f"{last}"


def bleu_by_source_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    limits: Sequence[int] = LENGTH_LIMITS,
    tokenize: str | None = None,
    lowercase: bool = False,
) -> list[SentenceGroup]:
    """Computes BLEU for each range of source lengths.

    The length is the number of words between blanks; in scripts without spaces
    each letter is a word. BLEU of few sentences is not reliable: see
    `num_sentences`.

    Args:
        sources: Source sentences.
        hypotheses: Their translations.
        references: One reference for each sentence.
        limits: Lowest lengths of all groups but the first, in ascending order.
        tokenize: sacreBLEU tokenizer. Defaults to that of the references'
            script, as in `corpus_scores`.
        lowercase: Whether case is ignored.

    Returns:
        The groups that have sentences, in ascending order.

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> groups = bleu_by_source_length(
    ...     ["ein Hund", "eine Katze schläft"],
    ...     ["a dog", "a cat sleeps"],
    ...     ["a dog", "a cat sleeps"],
    ...     limits=[3],
    ... )
    >>> [(group.label, group.num_sentences) for group in groups]
    [('0-2', 1), ('>= 3', 1)]
    """
    check_lengths(sources=sources, hypotheses=hypotheses, references=references)
    tokenize = tokenize or default_tokenizer(references)
    lengths = [len(split_words(line)) for line in sources]
    return _groups(lengths, limits, hypotheses, references, tokenize, lowercase)


def bleu_by_rarest_word(
    hypotheses: Sequence[str],
    references: Sequence[str],
    frequencies: Mapping[str, int],
    limits: Sequence[int] = FREQUENCY_LIMITS,
    tokenize: str | None = None,
    lowercase: bool = False,
) -> list[SentenceGroup]:
    """Computes BLEU for sentences with rare and with frequent words.

    A sentence belongs to the group of its reference's rarest word.

    Args:
        hypotheses: Translations.
        references: One reference for each sentence.
        frequencies: How often a word occurs in the target side of the training
            data; see `word_frequencies`.
        limits: Lowest frequencies of all groups but the first, in ascending
            order.
        tokenize: sacreBLEU tokenizer, for BLEU and for the words. Defaults to
            that of the references' script, as in `corpus_scores`.
        lowercase: Whether case is ignored.

    Returns:
        The groups that have sentences, in ascending order. References without
        words are left out.

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> frequencies = {"a": 2, "dog": 1, "cat": 1}
    >>> groups = bleu_by_rarest_word(
    ...     ["a dog", "a"], ["a dog", "a"], frequencies, limits=[2]
    ... )
    >>> [(group.label, group.num_sentences) for group in groups]
    [('0-1', 1), ('>= 2', 1)]
    """
    check_lengths(hypotheses=hypotheses, references=references)
    tokenize = tokenize or default_tokenizer(references)
    split = word_splitter(tokenize, lowercase)
    rarest = [
        min((frequencies.get(word, 0) for word in split(line)), default=None)
        for line in references
    ]
    return _groups(rarest, limits, hypotheses, references, tokenize, lowercase)


def _groups(values, limits, hypotheses, references, tokenize, lowercase):
    """The groups of sentences by the values; `None` belongs to no group."""
    ends = [0, *limits, math.inf]
    members = [[] for _ in ends[1:]]
    for row, value in enumerate(values):
        if value is not None:
            members[bisect_right(limits, value)].append(row)
    return [
        SentenceGroup(
            first,
            end,
            len(rows),
            corpus_scores(
                [hypotheses[row] for row in rows],
                [references[row] for row in rows],
                ["bleu"],
                tokenize,
                lowercase,
            )["bleu"],
        )
        for first, end, rows in zip(ends, ends[1:], members, strict=False)
        if rows
    ]
