"""Marks aligned words as terms, so that a model learns to use them."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from keras_deepnmt.data.tags import own_tag
from keras_deepnmt.data.terms import TERM_MARKS, marked_term
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.data.word_units import word_spans

# One word of so many is marked.
_WORDS_PER_TERM = 10
# A word without the punctuation around it.
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def with_aligned_terms(
    texts: tuple[str, str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    links: np.ndarray,
    draw: Callable[[], float],
) -> str:
    """Returns a source with about a tenth of its words marked as terms.

    A word is marked with the words that it alone is aligned with, if these
    stand side by side; punctuation around it stays outside. There is at least
    one mark, if there is such a word. A source that has marks already stays as
    it is. `links` are as `token_links` returns them, and `draw` returns numbers
    in [0, 1).
    """
    source, target = texts
    if any(mark in source for mark in TERM_MARKS):
        return source
    words = [_Words(*side) for side in zip(texts, tokenizers, strict=True)]
    of_source: dict[int, set[int]] = {}
    of_target: dict[int, set[int]] = {}
    for target_token, source_token in np.asarray(links).tolist():
        for one in words[0].of_token(source_token):
            for other in words[1].of_token(target_token):
                of_source.setdefault(one, set()).add(other)
                of_target.setdefault(other, set()).add(one)
    found = []
    for one, others in sorted(of_source.items()):
        is_alone = all(len(of_target[other]) == 1 for other in others)
        if is_alone and max(others) - min(others) < len(others):
            core = words[0].core(one, one)
            translation = words[1].core(min(others), max(others))
            if core and translation:
                found.append((core, target[slice(*translation)]))
    number = max(1, round(len(words[0].spans) / _WORDS_PER_TERM))
    chosen = []
    while found and len(chosen) < number:
        chosen.append(found.pop(int(draw() * len(found))))
    for (begin, end), translation in sorted(chosen, reverse=True):
        mark = marked_term(source[begin:end], translation)
        source = source[:begin] + mark + source[end:]
    return source


class _Words:
    """The words of a text, after its tag, and those of each token."""

    def __init__(self, text: str, tokenizer: Tokenizer):
        self._text, self._symbols = text, tokenizer.user_defined_symbols
        start = len(own_tag(text, self._symbols) or "")
        self.spans: Sequence[tuple[int, int]] = [
            (begin + start, end + start)
            for begin, end in word_spans(text[start:], by_space=True)
        ]
        self._of_tokens = tokenizer.token_words(text, start, by_space=True)

    def of_token(self, token: int) -> tuple[int, ...]:
        return self._of_tokens[token]

    def core(self, first: int, last: int) -> tuple[int, int] | None:
        """Where some words stand, without the punctuation around them."""
        begin, end = self.spans[first][0], self.spans[last][1]
        text = self._text[begin:end]
        found = _CORE.search(text)
        if found is None or any(symbol in text for symbol in self._symbols):
            return None
        return begin + found.start(), begin + found.end()
