"""Cuts a text into the parts between which tags and placeholders can stand."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from keras_deepnmt.data.kept_items import KeptItem
from keras_deepnmt.data.word_units import word_spans

LEAD, CORE, TRAIL = "lead", "core", "trail"
# What ends a sentence or a part of it.
ENDS = ".,;:!?…、。，！？：；؟"


@dataclass
class Atom:
    """A word without its punctuation, the punctuation at one end, or an item.

    Attributes:
        text: The characters.
        begin: The place of the first one in the text that it was cut from.
        end: The place after the last one.
        space: The white space before it.
        part: `"lead"` or `"trail"` of punctuation that touches the word after
            or before it, and `"core"` otherwise.
        word: The number of its word in `word_spans` of the text; -1 of none.
        item: The item that it is, if it is one.
    """

    text: str
    begin: int
    end: int
    space: str = ""
    part: str = CORE
    word: int = -1
    item: KeptItem | None = None


def cut_atoms(text: str, symbols: Sequence[str] = ()) -> list[Atom]:
    """Cuts a sentence into atoms, in order; each of `symbols` is an atom.

    Example:
    >>> [atom.text for atom in cut_atoms('a "dog", too')]
    ['a', '"', 'dog', '",', 'too']
    """
    is_symbol = re.compile("|".join(map(re.escape, symbols)) or r"(?!)")
    atoms: list[Atom] = []
    place = 0
    for number, (begin, end) in enumerate(word_spans(text)):
        for first, last, part in _cut_word(text, begin, end, is_symbol):
            if part == CORE and all(map(_is_mark, text[first:last])):
                part = _part_of_marks(text, first, last)
            atoms.append(
                Atom(
                    text[first:last],
                    first,
                    last,
                    text[place:first],
                    part,
                    number,
                )
            )
            place = last
    return atoms


def with_final_marks(atoms: Sequence[Atom]) -> list[Atom]:
    """Returns atoms of which the last one is the end of the sentence alone.

    A quotation mark or bracket before it is an atom of its own then.

    Example:
    >>> [atom.text for atom in with_final_marks(cut_atoms('a "dog".'))]
    ['a', '"', 'dog', '"', '.']
    """
    if not atoms or not is_marks(atoms[-1]):
        return [*atoms]
    *others, last = atoms
    size = next((n for n, c in enumerate(last.text) if c in ENDS), 0)
    if not size:
        return [*atoms]
    place = last.begin + size
    one = replace(last, text=last.text[:size], end=place)
    two = replace(last, text=last.text[size:], begin=place, space="")
    return [*others, one, two]


def is_marks(atom: Atom) -> bool:
    """Whether an atom is punctuation alone, and no item."""
    return atom.item is None and all(map(_is_mark, atom.text))


def _cut_word(text, begin, end, is_symbol):
    """Yields where the parts of a word begin and end, and which they are."""
    matches = list(is_symbol.finditer(text, begin, end))
    if not matches:
        yield from _cut_marks(text, begin, end)
        return
    place = begin
    for match in matches:
        # What touches a symbol without letters belongs to it.
        yield from _cut_between(text, place, match.start(), place > begin)
        yield match.start(), match.end(), CORE
        place = match.end()
    yield from _cut_between(text, place, end, True)


def _cut_between(text, begin, end, is_after):
    if begin == end:
        return
    if all(map(_is_mark, text[begin:end])):
        yield begin, end, TRAIL if is_after else LEAD
    else:
        yield from _cut_marks(text, begin, end)


def _cut_marks(text, begin, end):
    first, last = begin, end
    while first < last and _is_mark(text[first]):
        first += 1
    while last > first and _is_mark(text[last - 1]):
        last -= 1
    if first == last:  # nothing but punctuation
        yield begin, end, CORE
        return
    if begin < first:
        yield begin, first, LEAD
    yield first, last, CORE
    if last < end:
        yield last, end, TRAIL


def _part_of_marks(text, begin, end):
    """Decides for a word of marks alone, as in Chinese or between spaces."""
    touches_before = text[begin - 1 : begin].strip()
    touches_after = text[end : end + 1].strip()
    opens = unicodedata.category(text[begin]) in ("Ps", "Pi")
    if touches_after and (opens or not touches_before):
        return LEAD
    return TRAIL if touches_before else CORE


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter).startswith("P")
