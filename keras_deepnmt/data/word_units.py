"""Splits text into words, also where a script has no spaces between them.

Such a script (`scripts.WITHOUT_SPACES`) has one unit everywhere: each letter,
with the marks that follow it, counts as a word. What stands between them, such
as punctuation, a number or a word in Latin letters, counts as a word too.
"""

import re
from collections.abc import Callable, Iterable

import regex

from keras_deepnmt.data.scripts import (
    LETTER_WITHOUT_SPACES,
    detect_script_without_spaces,
    is_written_with_spaces,
)

_LETTER = regex.compile(LETTER_WITHOUT_SPACES, regex.V1)
# A faster first look: all such letters are here, and few others.
_PERHAPS = re.compile("[\u0e00-\u1cff\u2e80-\uabff\uf900-\U0003ffff]")
# As `str.split`, and the zero-width space, which Khmer and Thai texts may have.
_BLANK = r"\s\x1c-\x1f\u200b"
_BETWEEN_SPACES = re.compile(r"\S+")
_LETTER_AND_MARKS = regex.compile(rf"{LETTER_WITHOUT_SPACES}\p{{M}}*", regex.V1)
_WORD = regex.compile(
    rf"{LETTER_WITHOUT_SPACES}\p{{M}}*|[[^{_BLANK}]--{LETTER_WITHOUT_SPACES}]+",
    regex.V1,
)


def lacks_spaces(text: str) -> bool:
    """Whether a text has letters of a script without spaces between words.

    Example:
    >>> lacks_spaces("a 東"), lacks_spaces("a b")
    (True, False)
    """
    if text.isascii():
        return False
    perhaps = _PERHAPS.search(text)
    return perhaps is not None and (
        _LETTER.search(text, perhaps.start()) is not None
    )


def word_spans(text: str, by_space: bool = False) -> list[tuple[int, int]]:
    """Returns where the words of a text begin and end.

    Between spaces stands one word, except in scripts without spaces, where each
    letter with its marks is a word, and so is what stands between the letters.
    With `by_space` white space alone divides words, in these scripts too.

    Example:
    >>> word_spans("a dog")
    [(0, 1), (2, 5)]
    >>> word_spans("我用iOS，")
    [(0, 1), (1, 2), (2, 6)]
    """
    without_spaces = not by_space and lacks_spaces(text)
    word = _WORD if without_spaces else _BETWEEN_SPACES
    return [match.span() for match in word.finditer(text)]


def split_words(text: str) -> list[str]:
    """Returns the words of a text, as in `word_spans`.

    Example:
    >>> split_words("我用 iPhone")
    ['我', '用', 'iPhone']
    """
    if not lacks_spaces(text):
        return text.split()
    # Three times as fast as `_WORD`.
    apart = _LETTER_AND_MARKS.sub(r" \g<0> ", text)
    return apart.replace("\u200b", " ").split()


def word_counter(language: str | None = None) -> Callable[[str], int]:
    """Returns a function that counts the words of a text.

    In a language that is known to have spaces between its words, they alone
    count.
    """
    if is_written_with_spaces(language):
        return lambda text: len(text.split())
    return lambda text: len(split_words(text))


def describe_words(lines: Iterable[str]) -> str:
    """Says in a heading what the words of a text are."""
    script = detect_script_without_spaces(lines)
    if script is None:
        return "words"
    return f"words (each letter of {script} counts)"
