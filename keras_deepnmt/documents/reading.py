"""What a model reads of a text with tags and placeholders."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from keras_deepnmt.data.kept_items import TAG_KINDS, KeptItem
from keras_deepnmt.data.marked_text import MarkedText, separating_tags
from keras_deepnmt.documents.atoms import (
    ENDS,
    Atom,
    cut_atoms,
    with_final_marks,
)

_BRACKETS = {"(": ")", "[": "]", "„": "“", "“": "”", "«": "»", "»": "«"}
_BRACKETS |= {mark: mark for mark in "\"'"}


@dataclass
class Reading:
    """A part of a text as a model reads it.

    Attributes:
        text: What the model reads.
        places: For each of its characters the place in the given text.
        symbols: The items that symbols stand for, by symbol.
        removed: The items that the model does not read, as atoms.
    """

    text: str
    places: list[int]
    symbols: dict[str, KeptItem] = field(default_factory=dict)
    removed: list[Atom] = field(default_factory=list)

    def atoms(self) -> list[Atom]:
        """Returns the atoms of the part, with their places in the given text.

        All items but tags are among them.
        """
        atoms = [
            self._given(atom) for atom in cut_atoms(self.text, self.symbols)
        ]
        return sorted([*atoms, *self.removed], key=lambda atom: atom.begin)

    def target_atoms(self, translation: str) -> list[Atom]:
        """Returns the atoms of a translation, with items for symbols."""
        atoms = with_final_marks(cut_atoms(translation, self.symbols))
        return [self._restored(atom) for atom in atoms]

    def _given(self, atom):
        begin, end = self.places[atom.begin], self.places[atom.end - 1] + 1
        return self._restored(replace(atom, begin=begin, end=end))

    def _restored(self, atom):
        item = self.symbols.get(atom.text)
        return replace(atom, text=item.text, item=item) if item else atom


def read_part(
    marked: MarkedText,
    begin: int,
    end: int,
    symbols: Sequence[str] = (),
) -> Reading:
    """Takes the items out of the part of a text from `begin` to `end`.

    Symbols stand for the first items that are no tags; the others are removed.
    """
    words = marked.words(begin, end)
    named = dict(zip(words, symbols, strict=False))
    reader = _Reader(marked.text, begin, end)
    separating = separating_tags(marked)
    tag_ends = {
        item.begin: item.end for item in marked.items if item.kind in TAG_KINDS
    }
    for item in marked.items:
        if not begin <= item.begin < end:
            continue
        reader.read_to(item.begin)
        if item in named:
            reader.write(item, named[item])
        elif item.kind not in TAG_KINDS:
            reader.remove(item, tag_ends)
        elif item in separating:
            reader.write(item, " ")
        reader.skip_to(item.end)
    reader.read_to(end)
    return Reading(
        "".join(reader.letters),
        reader.places,
        {symbol: item for item, symbol in named.items()},
        reader.removed,
    )


def with_stand_ins(marked: MarkedText, word: str) -> Reading:
    """Takes the tags out of a text, and puts a word in place of other items.

    Example:
    >>> with_stand_ins(MarkedText.of("Hallo <b>{name}</b>!"), "Wort").text
    'Hallo Wort!'
    """
    reader = _Reader(marked.text, 0, len(marked.text))
    separating = separating_tags(marked)
    for item in marked.items:
        reader.read_to(item.begin)
        if item.kind not in TAG_KINDS:
            reader.write(item, word)
        elif item in separating:
            reader.write(item, " ")
        reader.skip_to(item.end)
    reader.read_to(len(marked.text))
    return Reading("".join(reader.letters), reader.places)


class _Reader:
    def __init__(self, text, begin, end):
        self.letters: list[str] = []
        self.places: list[int] = []
        self.removed: list[Atom] = []
        self._text = text
        self._begin = self._place = begin
        self._end = end

    def read_to(self, place):
        self.letters += self._text[self._place : place]
        self.places += range(self._place, max(place, self._place))
        self._place = max(place, self._place)

    def skip_to(self, place):
        self._place = max(place, self._place)

    def write(self, item, letters):
        self.letters += letters
        self.places += [item.begin] * (len(letters) - 1) + [item.end - 1]

    def remove(self, item, tag_ends):
        begin, end = item.begin, item.end
        while (
            self.places
            and self.places[-1] == begin - 1
            and end < self._end
            and _BRACKETS.get(self._text[begin - 1]) == self._text[end]
        ):
            self._drop_last()
            begin, end = begin - 1, end + 1
        self.skip_to(end)
        place = end
        while place in tag_ends:
            place = tag_ends[place]
        after = self._text[place : self._end][:1]
        if not after or after.isspace() or _ends(after):
            while self.letters and self.letters[-1].isspace():
                self._drop_last()
        self.removed.append(Atom(self._text[begin:end], begin, end, item=item))

    def _drop_last(self):
        self.letters.pop()
        self.places.pop()


def _ends(letter: str) -> bool:
    """Whether no space stands before such punctuation."""
    return letter in ENDS or unicodedata.category(letter) in (
        "Pe",
        "Pf",
    )
