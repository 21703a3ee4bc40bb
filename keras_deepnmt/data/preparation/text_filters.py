"""Compares texts and decides which training pairs are kept."""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from keras_deepnmt.data.normalization import load_normalization
from keras_deepnmt.data.word_units import word_counter

# The reasons for which a pair may be left out, always or if asked for.
FILTERS = ("empty", "identical", "length", "ratio", "duplicate")
OPTIONAL_FILTERS = ("encoding", "language", "misaligned")


def compared_text(text: str) -> str:
    """Returns a text as filters and counts of repeated text read it.

    Texts that look the same count as the same, also where the tokenizers keep
    them apart: so the pairs that are kept do not depend on the tokenizers, and
    both sides of a pair are read alike. It has single spaces. Nothing but
    comparisons sees it.
    """
    return _rule_of_comparisons().normalize(text)


@functools.cache
def _rule_of_comparisons():
    # Kept: it takes ten times as long to make as a text to be rewritten by it.
    return load_normalization("nfkc")


def hash_text(*texts: str) -> int:
    """Hashes one text, or both sides of a pair, to an unsigned 64-bit integer.

    The hash is the same in every process.
    """
    data = "\n".join(texts).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


@dataclass(frozen=True)
class PairFilter:
    """Names the rule by which a training pair is left out, if any.

    Lengths are numbers of words before tokenization, as `word_units` counts
    them; `max_ratio` is the maximum number of words of one side per word of the
    other. In languages that are known to have spaces between words they alone
    count.

    Example:
    >>> PairFilter(max_ratio=2.0).reason("one two three", "eins")
    'ratio'
    """

    min_length: int = 1
    max_length: int = 250
    max_ratio: float = 9.0
    drop_identical: bool = True
    source_language: str | None = None
    target_language: str | None = None

    @functools.cached_property
    def _counters(self) -> tuple[Callable[[str], int], ...]:
        languages = self.source_language, self.target_language
        return tuple(word_counter(language) for language in languages)

    def lengths(self, source: str, target: str) -> tuple[int, int]:
        """Returns the number of words of each side."""
        count_source, count_target = self._counters
        return count_source(source), count_target(target)

    def reason(self, source: str, target: str) -> str | None:
        """Names the first rule that a pair, as filters read it, breaks.

        It is one of `"empty"`, `"identical"`, `"length"` and `"ratio"`, or
        `None` for a pair to keep.
        """
        if not source or not target:
            return "empty"
        if self.drop_identical and source == target:
            return "identical"
        shorter, longer = sorted(self.lengths(source, target))
        if shorter < self.min_length or longer > self.max_length:
            return "length"
        return "ratio" if longer > self.max_ratio * shorter else None
