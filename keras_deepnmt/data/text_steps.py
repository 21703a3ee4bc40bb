"""Changes of a text that a SentencePiece model cannot make by itself.

A tokenizer's file names its steps, see `tokenizers`. A new kind of step is a
subclass of `TextStep`, such as `FactoredCase`, and its name in
`model_files.TEXT_STEPS`.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


class TextStep:
    """One change of a text before it is cut into pieces, and its inverse.

    The methods in pairs, for Python and for a TensorFlow graph, must do the
    same. Graphs may only use operations that TensorFlow Serving has.

    Args:
        user_defined_symbols: The texts that always are one piece.

    Attributes:
        name: what files call it.
        joining: the characters after which `after` removes a space, so that the
            next piece belongs to the same word.
        following: what has to stand after a part of a sentence, so that
            `before` does not take its end for that of the sentence.
        separator: where the words of `before` are the pieces, the end of each
            one that belongs to the same word as the next. Else it is empty.
        form: a pydantic model of the options that a tokenizer's file holds for
            the step, which are arguments here. `None` for a step without any.

    Example:
    >>> TextStep().before("A text.")
    'A text.'
    """

    name = ""
    joining = ""
    following = ""
    separator = ""
    form: type | None = None

    def __init__(self, user_defined_symbols: Sequence[str] = ()):
        pass

    def before(self, text: str) -> str:
        """Returns the text that is cut into pieces instead of `text`."""
        return text

    def places(self, text: str) -> list[int]:
        """Returns the place in a text of each character of `before(text)`.

        The last value, for the end of the text, is one more than these.
        """
        return list(range(len(text) + 1))

    def after(self, text: str) -> str:
        """Returns the final text for one that was joined from pieces."""
        return text

    def before_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        """Does what `before` does for a string tensor."""
        return texts

    def after_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        """Does what `after` does for a string tensor."""
        return texts


class DropNull(TextStep):
    r"""Drops the character U+0000, which no rule of SentencePiece can name.

    Example:
    >>> DropNull().before("ein\0 Hund"), DropNull().places("a\0b")
    ('ein Hund', [0, 2, 3])
    """

    name = "drop_null"

    def before(self, text: str) -> str:
        return text.replace("\0", "")

    def places(self, text: str) -> list[int]:
        kept = [place for place, letter in enumerate(text) if letter != "\0"]
        return [*kept, len(text)]

    def before_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        import tensorflow as tf

        return tf.strings.regex_replace(texts, r"\x00", "")


class BeginSymbol(TextStep):
    """Puts a symbol and a space before a text, which is its first token.

    For models whose encoder reads a begin token. The tokenizer must have the
    symbol as a piece with the space, see `model_files.with_begin_symbol`. A
    text of spaces alone stays as it is.
    """

    name = "begin_symbol"
    symbol = "\U0004fffe"  # no character, and none of `letter_case`
    joining = symbol

    def before(self, text: str) -> str:
        text = text.replace(self.symbol, "")
        if re.search(r"[^ \t\n]", text):
            return f"{self.symbol} {text}"
        return text

    def places(self, text: str) -> list[int]:
        kept = [n for n, letter in enumerate(text) if letter != self.symbol]
        kept.append(len(text))
        if len(self.before(text)) == len(kept) - 1:
            return kept
        return [kept[0], kept[0], *kept]

    def after(self, text: str) -> str:
        return re.sub(f"{self.symbol} ?", "", text)

    def before_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        import tensorflow as tf

        texts = tf.strings.regex_replace(texts, self.symbol, "")
        return tf.strings.regex_replace(
            texts, r"(?s)\A(.*[^ \t\n].*)\z", rf"{self.symbol} \1"
        )

    def after_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        import tensorflow as tf

        return tf.strings.regex_replace(texts, f"{self.symbol} ?", "")


class DropLastSpace(TextStep):
    """Drops the space that ends the last word where `▁` ends a word.

    It belongs to every model with `treat_whitespace_as_suffix`, whose file says
    so without naming this step.
    """

    def after(self, text: str) -> str:
        return text.removesuffix(" ")

    def after_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        import tensorflow as tf

        return tf.strings.regex_replace(texts, r" \z", "")


def separator_of(steps: Sequence[TextStep]) -> str:
    """Returns the separator of the step after which words are the pieces.

    Example:
    >>> separator_of([DropNull()])
    ''
    """
    return "".join(step.separator for step in steps)
