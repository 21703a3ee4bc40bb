"""Factored case: symbols tell which letters of lower-case words are capitals.

"Der HUND" is read as "₁ der ₂ hund", where ₁ and ₂ stand for two symbols. So
"der", "Der" and "DER" have the same pieces. A line in capitals has one symbol,
and so has a line whose words are all capitalized: then they translate as the
usual form does. This step only inserts the symbols, and removes them from a
translation; the rule of the tokenizer, see `normalization`, makes the letters
lower-case.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from keras_deepnmt.data.context_mark import CONTEXT_MARK
from keras_deepnmt.data.letter_case import (
    ALL_CAPITALS,
    CAPITAL,
    CAPITALS,
    CASE_SYMBOLS,
    DROPPED,
    EACH_CAPITAL,
    LAST_SYMBOLS,
    LEAST_ALL_CAPITALS,
    LEAST_EACH_CAPITAL,
    LOWER_CASE,
    NEUTRAL,
    SPACES,
    TO_LOWER,
    TO_UPPER,
    UPPER_CASE,
    character_class,
)
from keras_deepnmt.data.text_steps import TextStep

if TYPE_CHECKING:
    import tensorflow as tf

    from keras_deepnmt.data.factored_case_in_graph import CaseInGraph

_LETTERS = UPPER_CASE | LOWER_CASE | NEUTRAL
_DROP = str.maketrans("", "", DROPPED)
_RAISE = str.maketrans(TO_UPPER)
_LAST_SYMBOLS = re.compile(rf"{LAST_SYMBOLS}\Z")
_SCOPE = re.compile(f"([{CASE_SYMBOLS}]) ?([^{CASE_SYMBOLS}]*)")
_WORD_OF_LETTERS = re.compile(f"{character_class(_LETTERS)}*")
_SPACE = character_class(SPACES)
_NO_LETTER = f"[^{character_class(UPPER_CASE, LOWER_CASE)[1:-1]}]"
_WORD = re.compile(f"[^{_SPACE[1:-1]}]+")
_WITHOUT_LETTER = re.compile(f"{_NO_LETTER}*")
_CAPITALIZED = re.compile(
    f"{_NO_LETTER}*{character_class(UPPER_CASE)}"
    f"[^{character_class(UPPER_CASE)[1:-1]}]*"
)
_FIRST_LETTER = re.compile(
    rf"(?:\A|{_SPACE})"
    f"[^{character_class(UPPER_CASE, LOWER_CASE, SPACES)[1:-1]}]*"
    f"{character_class(LOWER_CASE)}"
)


class FactoredCase(TextStep):
    r"""Inserts a symbol and a space before letters that are upper-case.

    One capital gets the symbol `CAPITAL`. Two or more get one `CAPITALS`; of
    these, the last one gets a symbol of its own if a lower-case letter follows:
    "USAs" is "US" and "As".

    Where a text ends in several words in capitals, one `ALL_CAPITALS` stands
    for all of them, and where it ends in several capitalized words, one
    `EACH_CAPITAL`. No symbol is inserted into a text that always is one piece.
    Each sentence of a `context` is a text by itself, so that one without those
    before it has the same symbols.

    The inverse removes each symbol, and one space after it. What a symbol says
    ends at the next symbol. In the scope of the last two, texts that always are
    one piece stay as they are.

    Args:
        user_defined_symbols: The texts that always are one piece.

    Example:
    >>> from keras_deepnmt.data.letter_case import CAPITAL, CAPITALS
    >>> FactoredCase().before("der Hund") == f"der {CAPITAL} Hund"
    True
    >>> FactoredCase().after(f"{CAPITAL} der {CAPITALS} usa")
    'Der USA'
    """

    name = "factored_case"
    joining = CASE_SYMBOLS
    following = " a"  # then no symbol is for all words up to the end

    def __init__(self, user_defined_symbols: Sequence[str] = ()):
        self._mark = (
            CONTEXT_MARK if CONTEXT_MARK in user_defined_symbols else ""
        )
        self._fixed_pattern = any_of(user_defined_symbols)
        self._fixed = re.compile(self._fixed_pattern or r"(?!)")
        self._loose_pattern = any_of(user_defined_symbols, _in_any_case)
        self._loose = re.compile(self._loose_pattern or r"(?!)")
        upper = character_class(UPPER_CASE)
        run = character_class(UPPER_CASE, NEUTRAL)
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
        if any(symbol in text for symbol in CASE_SYMBOLS):
            sentences = map(self._without_symbols, self._sentences(text))
            text = self._mark.join(sentences)
        return text

    def before_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        return self._in_graph.insert_symbols(texts)

    def after_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        return self._in_graph.remove_symbols(texts)

    @cached_property
    def _in_graph(self) -> "CaseInGraph":
        from keras_deepnmt.data.factored_case_in_graph import CaseInGraph

        return CaseInGraph(self._fixed_pattern, self._loose_pattern, self._mark)

    def _sentences(self, text: str) -> list[str]:
        """Returns the parts of a text between the marks of a context."""
        return text.split(self._mark) if self._mark else [text]

    def _symbols(self, text: str) -> list[tuple[int, str]]:
        """Returns the places of the letters that get a symbol, and which."""
        found, start = [], 0
        for sentence in self._sentences(text):
            found += [
                (start + place, symbol)
                for place, symbol in self._of_sentence(sentence)
            ]
            start += len(sentence) + len(self._mark)
        return found

    def _of_sentence(self, text) -> list[tuple[int, str]]:
        runs = [
            match.span(1)
            for match in self._found.finditer(text)
            if match.start(1) >= 0  # no symbol of the user
        ]
        start, symbol = self._last_words(text, runs)
        own = [run for run in runs if run[0] < start]
        found = [pair for run in own for pair in self._of_run(text, *run)]
        if len(own) < len(runs):
            found.append((runs[len(own)][0], symbol))
        return found

    def _of_run(self, text, begin, end) -> Iterator[tuple[int, str]]:
        """Yields the symbols of letters that are upper-case or neutral."""
        capitals = [n for n in range(begin, end) if text[n] in UPPER_CASE]
        after = text[end : end + 1]
        last = []
        if self._fixed.match(text, end):
            if after in _LETTERS:
                # They must not be taken for more of these.
                yield from ((place, CAPITAL) for place in capitals)
                return
        elif after in LOWER_CASE:
            last = [capitals.pop()]
        if capitals:
            yield capitals[0], CAPITAL if len(capitals) == 1 else CAPITALS
        yield from ((place, CAPITAL) for place in last)

    def _last_words(self, text, runs) -> tuple[int, str]:
        """Returns where words begin that have one symbol, and the symbol."""
        none = len(text), ""
        if len(runs) < min(LEAST_ALL_CAPITALS, LEAST_EACH_CAPITAL):
            return none
        # In lower case, they must not look like a symbol of the user.
        fixed, loose = (p.findall(text) for p in (self._fixed, self._loose))
        if len(fixed) != len(loose):
            return none
        free = self._free(text)
        end = len(free)
        while end and free[end - 1] not in LOWER_CASE:
            end -= 1
        last = [free[slice(*run)] for run in runs if run[0] >= end]
        capitals = sum(letter in UPPER_CASE for run in last for letter in run)
        if len(last) >= LEAST_ALL_CAPITALS and capitals > len(last):
            return end, ALL_CAPITALS
        others = (
            word.end()
            for word in reversed(list(_WORD.finditer(free)))
            if not _CAPITALIZED.fullmatch(word[0])
            and not _WITHOUT_LETTER.fullmatch(word[0])
        )
        end = next(others, 0)
        if sum(begin >= end for begin, _ in runs) >= LEAST_EACH_CAPITAL:
            return end, EACH_CAPITAL
        return none

    def _free(self, text):
        """Replaces the characters of symbols of the user by U+0000."""
        return self._fixed.sub(lambda match: "\0" * len(match[0]), text)

    def _without_symbols(self, text):
        """Gives a sentence the letters that its symbols say."""
        return _SCOPE.sub(self._raise_letters, _LAST_SYMBOLS.sub("", text))

    def _raise_letters(self, match: re.Match) -> str:
        symbol, text = match.groups()
        if symbol in (CAPITAL, CAPITALS):
            end = _WORD_OF_LETTERS.match(text).end()
            if symbol == CAPITAL:
                end = min(end, 1)
            return text[:end].translate(_RAISE) + text[end:]
        raised = self._free(text)
        if symbol == ALL_CAPITALS:
            raised = raised.translate(_RAISE)
        else:
            raised = _FIRST_LETTER.sub(
                lambda first: first[0].translate(_RAISE), raised
            )
        return "".join(
            new if new != "\0" else old
            for new, old in zip(raised, text, strict=True)
        )


def any_of(
    texts: Sequence[str], pattern: Callable[[str], str] = re.escape
) -> str:
    """Returns a regular expression for the longest of some texts, or ''.

    `pattern` gives the one of a single text.

    Example:
    >>> any_of(["a", "ab"])
    '(?:ab|a)'
    """
    longest_first = sorted(texts, key=len, reverse=True)
    alternatives = "|".join(map(pattern, longest_first))
    return f"(?:{alternatives})" if texts else ""


def _in_any_case(text):
    """Returns a regular expression for a text in upper, lower or mixed case."""
    partners = TO_LOWER | TO_UPPER
    return "".join(
        f"[{c}{partners[c]}]" if c in partners else re.escape(c) for c in text
    )
