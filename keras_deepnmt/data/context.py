"""Context: the sentences of a document before a source sentence.

A sentence in context is one text, `the first <sep> the second <sep> this one`,
of which the last sentence is translated. The mark is a user-defined symbol of
the source tokenizer, so that it always is one token. A line of nothing but
white space ends a document, see `ends_document`.
"""

import collections
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import numpy as np

from keras_deepnmt.data.context_mark import CONTEXT_MARK
from keras_deepnmt.data.tags import (
    own_tag,
    tagged_sentence,
    tagged_text,
    untagged_text,
)

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer

_BETWEEN = f" {CONTEXT_MARK} "


class ContextWindow:
    """The last sentences of the document that is read.

    The context of a sentence is the `size` sentences before it. A sentence
    may begin with one of `tags`, which then stands before its context; the
    context has none.
    """

    def __init__(self, size: int, tags: Collection[str] = ()):
        self._tags = tags
        self._before: collections.deque[str] = collections.deque(maxlen=size)

    def take(self, text: str) -> str:
        """Returns the next sentence in its context.

        An empty one stays as it is, and one of a tag alone becomes empty.
        """
        before = self.before(text)
        words = untagged_text(text, self._tags)
        if not words.strip():
            return words
        return with_context(before, text, self._tags)

    def before(self, text: str, target: str = "") -> str:
        """Returns the context of the next sentence, the last mark included.

        With its `target`, if it has one, it may end the document.
        """
        text = untagged_text(text, self._tags)
        if ends_document(text, target):
            self._before.clear()
            return ""
        before = "".join(f"{one}{_BETWEEN}" for one in self._before)
        if text.strip():
            self._before.append(text)
        return before


def with_context(before: str, text: str, tags: Collection[str] = ()) -> str:
    """Returns a sentence after its context, with its own tag before both.

    Example:
    >>> with_context("a <sep> ", "<2de> b", ["<2de>"])
    '<2de> a <sep> b'
    """
    if not before:
        return text
    tag = own_tag(text, tags)
    return tagged_sentence(f"{before}{untagged_text(text, tags)}", tag)


def ends_document(source: str, target: str = "") -> bool:
    r"""Returns whether a line ends a document: both sides are white space.

    Example:
    >>> ends_document("\u00a0 "), ends_document("", "ein Hund")
    (True, False)
    """
    return not source.strip() and not target.strip()


def in_context(
    texts: Iterable[str], size: int, tags: Collection[str] = ()
) -> list[str]:
    """Puts sentences in their context, as a model reads them.

    Args:
        texts: The sentences of documents, in order; an empty one ends a
            document.
        size: How many sentences before each one are its context: at most as
            many as in training, `data.context`.
        tags: Those that a sentence may begin with, such as
            `Translator.training_tags`. Its own stands before its context, and
            the context has none.

    Returns:
        A text for each of them, for `Translator.translate`.

    Example:
    >>> in_context(["a", "b", "c", "", "d"], 2)
    ['a', 'a <sep> b', 'a <sep> b <sep> c', '', 'd']
    """
    return list(map(ContextWindow(size, tags).take, texts))


def without_context(text: str, tags: Collection[str] = ()) -> str:
    """Returns the last sentence of a text, which is translated.

    One of the tags that the text begins with is that of the sentence.

    Example:
    >>> without_context("a <sep> b"), without_context("a")
    ('b', 'a')
    >>> without_context("<2de> a <sep> b", ["<2de>"])
    '<2de> b'
    """
    _, mark, sentence = text.rpartition(_BETWEEN)
    return tagged_sentence(sentence, own_tag(text, tags)) if mark else text


def mark_id(tokenizer: "Tokenizer") -> int | None:
    """Returns the id of the mark, or `None` if a tokenizer has none."""
    # A tokenizer of the user's own need not have such symbols.
    if CONTEXT_MARK not in getattr(tokenizer, "user_defined_symbols", ()):
        return None
    return tokenizer.ids_of_pieces([CONTEXT_MARK])[0]


def tag_length(tokenizer: "Tokenizer", tag: str | None) -> int:
    """Returns how many ids of a sentence are its tag."""
    if tag is None:
        return 0
    texts = [tagged_text(CONTEXT_MARK, tag), CONTEXT_MARK]
    longer, shorter = tokenizer.encode(texts)
    return len(longer) - len(shorter)


def shorten_context(
    ids: np.ndarray, most: int, mark: int, first: int = 0
) -> np.ndarray:
    """Leaves out the first sentences of a context that is too long.

    `ids` are those of a sentence in context, without special ids, and `mark` is
    the id of the mark. The `first` ids, such as a tag, are kept in any case.
    More than `most` are left if the last sentence alone has more.
    """
    if len(ids) <= most:
        return ids
    starts = np.flatnonzero(ids == mark) + 1
    starts = starts[starts > first]
    if not len(starts):
        return ids
    lengths = first + len(ids) - starts
    start = starts[min(np.sum(lengths > most), len(starts) - 1)]
    return np.concatenate([ids[:first], ids[start:]])
