"""Factored case: symbols tell which letters of lower-case words are capitals.

"Der HUND" is read as "₁ der ₂ hund", where ₁ and ₂ stand for the two symbols.
So "der", "Der" and "DER" have the same pieces, and a line in capitals
translates as its usual form does. This step only inserts the symbols, and
removes them from a translation; the rule of the tokenizer, see `normalization`,
makes the letters lower-case.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from keras_deepnmt.data.letter_case import (
    LOWER_CASE,
    NEUTRAL,
    TO_UPPER,
    UPPER_CASE,
    character_class,
)
from keras_deepnmt.data.text_steps import TextStep

if TYPE_CHECKING:
    import tensorflow as tf

    from keras_deepnmt.data.factored_case_in_graph import CaseInGraph

# Unicode guarantees that no text has these characters, "noncharacters". The
# first one says that the next letter is upper-case, the second one that all
# letters are, up to the next symbol or the next other character.
CAPITAL, CAPITALS = "\U0001fffe", "\U0001ffff"
CASE_SYMBOLS = CAPITAL + CAPITALS
# They stand around symbols of users, while a graph inserts case symbols.
BRACKETS = "\U0002fffe\U0002ffff"
# What a text loses before symbols are inserted.
DROPPED = CASE_SYMBOLS + BRACKETS
# Symbols that no letter follows, and the spaces that belong to them.
LAST_SYMBOLS = f"(?: ?[{CASE_SYMBOLS}])+ ?"

_LETTERS = UPPER_CASE | LOWER_CASE | NEUTRAL
_LETTER = character_class(_LETTERS)
_DROP = str.maketrans("", "", DROPPED)
_RAISE = str.maketrans(TO_UPPER)
_LAST_SYMBOLS = re.compile(rf"{LAST_SYMBOLS}\Z")
_SCOPE = re.compile(f"([{CASE_SYMBOLS}]) ?({_LETTER}*)")


class FactoredCase(TextStep):
    r"""Inserts a symbol and a space before letters that are upper-case.

    One capital gets the symbol `CAPITAL`. Two or more get one `CAPITALS`; of
    these, the last one gets a symbol of its own if a lower-case letter follows:
    "USAs" is "US" and "As". No symbol is inserted into a text that always is
    one piece.

    The inverse removes each symbol, and one space after it.

    Args:
        user_defined_symbols: The texts that always are one piece.

    Example:
    >>> FactoredCase().before("der Hund") == f"der {CAPITAL} Hund"
    True
    >>> FactoredCase().after(f"{CAPITAL} der {CAPITALS} usa")
    'Der USA'
    """

    name = "factored_case"
    joining = CASE_SYMBOLS

    def __init__(self, user_defined_symbols: Sequence[str] = ()):
        self._fixed_pattern = any_of(user_defined_symbols)
        self._fixed = re.compile(self._fixed_pattern or r"(?!)")
        upper, run = (
            character_class(UPPER_CASE),
            character_class(UPPER_CASE, NEUTRAL),
        )
        if self._fixed_pattern:
            fixed = self._fixed_pattern
            found = f"{fixed}|({upper}(?:(?!{fixed}){run})*)"
        else:
            found = f"({upper}{run}*)"
        self._found = re.compile(found)

    def before(self, text: str) -> str:
        text = text.translate(_DROP)
        parts, end = [], 0
        for place, symbol in self._symbols(text):
            parts += [text[end:place], symbol, " "]
            end = place
        return "".join([*parts, text[end:]])

    def places(self, text: str) -> list[int]:
        kept = [n for n, letter in enumerate(text) if letter not in DROPPED]
        kept.append(len(text))
        places, end = [], 0
        for place, _ in self._symbols(text.translate(_DROP)):
            places += [*kept[end:place], kept[place], kept[place]]
            end = place
        return places + kept[end:]

    def after(self, text: str) -> str:
        if CAPITAL in text or CAPITALS in text:
            text = _LAST_SYMBOLS.sub("", text)
            text = _SCOPE.sub(_raise_letters, text)
        return text

    def before_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        return self._in_graph.insert_symbols(texts)

    def after_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        return self._in_graph.remove_symbols(texts)

    @cached_property
    def _in_graph(self) -> "CaseInGraph":
        from keras_deepnmt.data.factored_case_in_graph import CaseInGraph

        return CaseInGraph(self._fixed_pattern)

    def _symbols(self, text: str) -> list[tuple[int, str]]:
        """Returns the places of the letters that get a symbol, and which."""
        found = []
        for match in self._found.finditer(text):
            begin, end = match.span(1)
            if begin < 0:  # a symbol of the user
                continue
            capitals = [n for n in range(begin, end) if text[n] in UPPER_CASE]
            after = text[end : end + 1]
            if self._fixed.match(text, end):
                # Its letters must not be taken for more of these.
                if after in _LETTERS:
                    found += [(place, CAPITAL) for place in capitals]
                    continue
                last = []
            else:
                last = capitals[-1:] if after in LOWER_CASE else []
            first = capitals[: len(capitals) - len(last)]
            if first:
                symbol = CAPITAL if len(first) == 1 else CAPITALS
                found.append((first[0], symbol))
            found += [(place, CAPITAL) for place in last]
        return found


def any_of(texts: Sequence[str]) -> str:
    """Returns a regular expression for the longest of some texts, or ''.

    Example:
    >>> any_of(["a", "ab"])
    '(?:ab|a)'
    """
    longest_first = sorted(texts, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first))
    return f"(?:{alternatives})" if texts else ""


def _raise_letters(match: re.Match) -> str:
    symbol, letters = match.groups()
    if symbol == CAPITALS:
        return letters.translate(_RAISE)
    return letters[:1].translate(_RAISE) + letters[1:]
