"""Puts tags and placeholders into a translation, by the links of its words.

All places in the translation are boundaries between atoms: boundary `b` is the
one before the atom `b`.
"""

import itertools
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from keras_deepnmt.data.kept_items import KeptItem
from keras_deepnmt.data.tag_tree import TagNode
from keras_deepnmt.data.word_units import lacks_spaces
from keras_deepnmt.documents.atoms import (
    CORE,
    ENDS,
    LEAD,
    TRAIL,
    Atom,
    is_marks,
)


@dataclass
class AlignedSentence:
    """The atoms of a sentence and of its translation, and how they are linked.

    Attributes:
        source: The atoms of the sentence. Their places are those in the given
            text, and items that the model did not read are among them.
        target: The atoms of the translation.
        links: Pairs of numbers, of a source atom and of a target atom.
    """

    source: list[Atom]
    target: list[Atom]
    links: set[tuple[int, int]] = field(default_factory=set)


def link_atoms(
    source: Sequence[Atom],
    target: Sequence[Atom],
    word_links: Sequence[tuple[int, int]],
) -> set[tuple[int, int]]:
    """Turns links of words into links of their atoms.

    The words of atoms are linked, and so are the punctuation before two linked
    words and that after them. An item is linked with itself alone. Where there
    are no links, atoms are linked with those at the same share of the length.
    """
    sides = []
    for atoms in (source, target):
        parts = defaultdict(list)
        for number, atom in enumerate(atoms):
            if atom.item is None:
                parts[atom.word, atom.part].append(number)
        sides.append(parts)
    links = {
        (one, other)
        for words in word_links
        for part in (LEAD, CORE, TRAIL)
        for one in sides[0].get((words[0], part), ())
        for other in sides[1].get((words[1], part), ())
    }
    places = {
        atom.item: number for number, atom in enumerate(target) if atom.item
    }
    items = {
        (number, places[atom.item])
        for number, atom in enumerate(source)
        if atom.item in places
    }
    if not links and target:
        links = {
            (number, number * len(target) // len(source))
            for number, atom in enumerate(source)
            if atom.item is None
        }
    return links | items


def insert_items(text: str, sentence: AlignedSentence) -> None:
    """Puts the items that the model did not read into a translation.

    Each follows what is linked with the word before it, but stands before the
    punctuation at the end of the sentence, unless it stood after that in the
    source. The target atoms and links of `sentence`, one of the text, change.
    """
    source, target = sentence.source, sentence.target
    inside = {atom.item for atom in target}
    # Items at the same boundary keep the order of the source.
    missing = sorted(
        (
            min(
                _neighbour_boundary(
                    text, source, target, sentence.links, atom.begin, atom.end
                ),
                _last_boundary(source, target, atom.begin, atom.end),
            ),
            number,
        )
        for number, atom in enumerate(source)
        if atom.item and atom.item not in inside
    )
    for boundary, number in reversed(missing):
        atom = source[number]
        new = replace(atom, space="")
        before = target[boundary - 1] if boundary else None
        after = target[boundary] if boundary < len(target) else None
        space = after.space if before and after else ""
        if (
            before
            and before.part != LEAD
            and not _is_word(text, atom.begin - 1)
        ):
            is_same = text[atom.begin - 1] == before.text[-1]
            new.space = space or (
                "" if is_same else _space_after(before.text[-1])
            )
        if after:
            is_glued = after.part == TRAIL or _is_word(text, atom.end)
            after.space = "" if is_glued else space or _space_for(after.text[0])
        target.insert(boundary, new)
        sentence.links = {
            (one, other + (other >= boundary)) for one, other in sentence.links
        } | {(number, boundary)}


def place_tags(
    text: str, tree: Sequence[TagNode], sentences: Sequence[AlignedSentence]
) -> str:
    """Puts tags into a translation and joins it.

    A pair encloses the words that are linked with those that it encloses in the
    source, from the first to the last, without words of its neighbours. The
    space of the sentences' first target atoms is the white space between them.
    """
    return _join(text, _Placer(text, sentences).parts(tree))


@dataclass(frozen=True)
class _Tag:
    item: KeptItem
    role: str  # opening, closing or single


class _Placer:
    def __init__(self, text, sentences):
        self._text = text
        self._source, self._target, self._links = [], [], set()
        self._sentences = []
        for one in sentences:
            first = len(self._source), len(self._target)
            self._source += one.source
            self._target += one.target
            self._links |= {(s + first[0], t + first[1]) for s, t in one.links}
            self._sentences.append(
                (
                    range(first[0], len(self._source)),
                    range(first[1], len(self._target)),
                )
            )

    def parts(self, tree) -> list[Atom | _Tag]:
        """Lists the atoms and the tags of the translation in order."""
        return list(self._inside(tree, 0, len(self._target)))

    def _inside(self, nodes, low, high):
        """Yields what stands between two boundaries, with these tags in it."""
        spans = self._spans(nodes, low, high)
        place = low
        for number in sorted(
            range(len(nodes)),
            key=lambda n: (spans[n][0], spans[n][0] < spans[n][1], n),
        ):
            begin, end = spans[number]
            yield from self._target[place:begin]
            node = nodes[number]
            if node.closing is None:
                yield _Tag(node.opening, "single")
            else:
                yield _Tag(node.opening, "opening")
                yield from self._inside(node.children, begin, end)
                yield _Tag(node.closing, "closing")
            place = end
        yield from self._target[place:high]

    def _spans(self, nodes, low, high):
        """Returns the boundaries of neighbours, which do not overlap."""
        wanted = [
            {t for t in self._enclosed(node) if low <= t < high}
            for node in nodes
        ]
        spans = [None] * len(nodes)
        free = [True] * len(self._target)
        for number in sorted(range(len(nodes)), key=lambda n: _size(wanted[n])):
            if not wanted[number]:
                continue
            span = _best_run(wanted[number], free)
            if span is None:
                continue
            begin, end = self._with_marks(nodes[number], *span, low, high, free)
            free[begin:end] = [False] * (end - begin)
            spans[number] = begin, end
        for number, node in enumerate(nodes):
            if spans[number] is None:
                boundary = self._boundary(node, low, high)
                for other, span in enumerate(spans):
                    # Not within a neighbour.
                    if span and span[0] < boundary < span[1]:
                        boundary = span[other < number]
                spans[number] = boundary, boundary
        return spans

    def _enclosed(self, node) -> set[int]:
        """Returns the target atoms of what a pair encloses."""
        inside = self._inside_pair(node)
        wanted = {t for s, t in self._links if s in inside}
        for sources, targets in self._sentences:
            words = _without_marks(self._source, sources) or list(sources)
            if words and inside.issuperset(words):
                wanted.update(_without_marks(self._target, targets))
        return wanted

    def _inside_pair(self, node) -> set[int]:
        if node.closing is None:
            return set()
        return {
            number
            for number, atom in enumerate(self._source)
            if atom.begin < node.end and node.begin < atom.end
        }

    def _with_marks(self, node, begin, end, low, high, free):
        """Takes in punctuation at the ends, if the source pair has such."""
        inside = self._inside_pair(node)
        if self._source[max(inside)].part == TRAIL:
            while end < high and free[end] and self._target[end].part == TRAIL:
                end += 1
        if self._source[min(inside)].part == LEAD:
            while (
                begin > low
                and free[begin - 1]
                and self._target[begin - 1].part == LEAD
            ):
                begin -= 1
        return begin, end

    def _boundary(self, node, low, high):
        boundary = self._sentence_boundary(node)
        if boundary is None:
            boundary = _neighbour_boundary(
                self._text,
                self._source,
                self._target,
                self._links,
                node.opening.begin,
                (node.closing or node.opening).end,
            )
            boundary = min(boundary, self._last_boundary(node))
        return min(max(boundary, low), high)

    def _last_boundary(self, node):
        """Returns that of the sentence in which tags are."""
        begin, end = node.opening.begin, (node.closing or node.opening).end
        for sources, targets in self._sentences:
            source = self._source[sources.start : sources.stop]
            target = self._target[targets.start : targets.stop]
            if source and source[-1].end > begin:
                return targets.start + _last_boundary(
                    source, target, begin, end
                )
        return len(self._target)

    def _sentence_boundary(self, node):
        """Returns that between two sentences, for tags that are there."""
        begin, end = node.opening.begin, (node.closing or node.opening).end
        for (before, _), (after, targets) in itertools.pairwise(
            self._sentences
        ):
            if before and after:
                last, first = self._source[before[-1]], self._source[after[0]]
                if last.end <= begin and end <= first.begin:
                    return targets.start
        return None


def _without_marks(atoms, numbers):
    """Leaves out punctuation before the first word and after the last."""
    numbers = list(numbers)
    while numbers and atoms[numbers[-1]].part == TRAIL:
        numbers.pop()
    while numbers and atoms[numbers[0]].part == LEAD:
        numbers.pop(0)
    return numbers


def _size(wanted):
    return max(wanted) - min(wanted) if wanted else 0


def _best_run(wanted, free):
    """Returns the free places from the first to the last that are wanted.

    Where others are between them, it is the part with most of these places.
    """
    runs, run = [], []
    for place in range(min(wanted), max(wanted) + 1):
        if not free[place]:
            runs.append(run)
            run = []
        elif place in wanted:
            run.append(place)
    best = max([*runs, run], key=len)
    return (best[0], best[-1] + 1) if best else None


def _neighbour_boundary(text, source, target, links, begin, end) -> int:
    """Returns the boundary that follows what is linked with a neighbour.

    It is that of the word before `begin` in the text, or, without one, of the
    word after `end`; something that touches only the word after it is there.
    """
    before = [n for n, atom in enumerate(source) if atom.end <= begin]
    after = [n for n, atom in enumerate(source) if atom.begin >= end]
    if not before:
        return 0
    if not after:
        return len(target)
    linked = {s for s, _ in links}
    last = next((n for n in reversed(before) if n in linked), None)
    first = next((n for n in after if n in linked), None)
    touches_next = _is_word(text, end) and not _is_word(text, begin - 1)
    if first is not None and (last is None or touches_next):
        boundary = min(t for s, t in links if s == first)
        while boundary and target[boundary - 1].part == LEAD:
            boundary -= 1
        return boundary
    if last is None:
        return len(target)
    boundary = max(t for s, t in links if s == last) + 1
    if source[after[0]].part != TRAIL:
        while boundary < len(target) and target[boundary].part == TRAIL:
            boundary += 1
    return boundary


def _last_boundary(source, target, begin, end) -> int:
    """Returns the last boundary for what stood between two places of a source.

    It is before the punctuation at the end of the translation, or after it if
    that of the source is before `begin`. Of quotation marks and brackets there,
    it is before those only if such end the source, too.
    """
    given = [atom for atom in source if atom.item is None]
    marks = list(itertools.takewhile(is_marks, reversed(given)))
    if marks and marks[0].end <= begin and set(marks[0].text) & set(ENDS):
        return len(target)
    after = "".join(atom.text for atom in marks if atom.begin >= end)
    boundary = len(target)
    while boundary and target[boundary - 1].item:
        boundary -= 1
    ends = False
    while boundary and is_marks(target[boundary - 1]):
        if not after.strip(ENDS) and target[boundary - 1].text[0] not in ENDS:
            break
        boundary, ends = boundary - 1, True
    return boundary if ends else len(target)


def _is_word(text: str, place: int) -> bool:
    """Whether a letter or a digit of a word with spaces is at a place."""
    if not 0 <= place < len(text):
        return False
    return text[place].isalnum() and not lacks_spaces(text[place])


def _space_for(letter: str) -> str:
    """The space between an item and a letter beside it."""
    return " " if letter.isalnum() and not lacks_spaces(letter) else ""


def _space_after(letter: str) -> str:
    """The space between a letter or mark and an item after it."""
    if unicodedata.category(letter).startswith("P"):
        is_wide = unicodedata.east_asian_width(letter) in "WF"
        return "" if is_wide else " "
    return _space_for(letter)


def _join(text: str, parts: Sequence[Atom | _Tag]) -> str:
    """Joins atoms and tags, with the white space of both."""
    joined: list[str] = []
    tags: list[_Tag] = []
    before = None
    for part in parts:
        if isinstance(part, _Tag):
            tags.append(part)
            continue
        joined += _between(text, before, tags, part)
        joined.append(part.text)
        before, tags = part, []
    return "".join([*joined, *_between(text, before, tags, None)])


def _between(text, before, tags, after):
    """Yields the tags between two atoms, with white space."""
    space = after.space if before and after else ""
    if before and after and not space:
        space = _missing_space(text, before, after)
    if not tags:
        yield space
        return
    spaces = _spaces(text, [tag.item for tag in tags])
    if before is None:
        spaces[0] = ""
    if after is None:
        spaces[-1] = ""
    if before and after and not space:
        ends = after.part == TRAIL and before.part != LEAD
        if ends and all(tag.role == "single" for tag in tags):
            # Not within a word, but before the end of a sentence.
            spaces[-1] = ""
        else:
            spaces = [""] * len(spaces)
    elif before and after and not any(spaces):
        # At the source such tags stood in a word, or at another place.
        roles = [tag.role for tag in tags]
        place = next((n for n, r in enumerate(roles) if r != "closing"), -1)
        if set(roles) != {"single"}:
            spaces[place] = space
    elif "".join(spaces) != space:
        # The white space between sentences stays as it is, at one place.
        first = next((n for n, one in enumerate(spaces) if one), 0)
        spaces = [one and " " for one in spaces]
        if space not in ("", " "):
            spaces = [""] * len(spaces)
            spaces[first] = space
    for here, tag in zip(spaces, tags, strict=False):
        yield here
        yield tag.item.text
    yield spaces[-1]


def _spaces(text, items):
    """The white space that tags have in the source, where two of them agree."""
    before, after = [], []
    for item in items:
        rest = text[: item.begin]
        before.append(rest[len(rest.rstrip()) :] or " " * (not rest))
        rest = text[item.end :]
        after.append(rest[: -len(rest.lstrip()) or None] if rest else " ")
    inner = [
        one and other for one, other in zip(after, before[1:], strict=False)
    ]
    return [before[0], *inner, after[-1]]


def _missing_space(text, before, after):
    """The space that an item needs beside a word that it was not beside."""
    if before.item and after.item:
        return "" if before.item.end == after.item.begin else " "
    if before.item and not _is_word(text, before.item.end):
        return _space_for(after.text[0])
    if after.item and not _is_word(text, after.item.begin - 1):
        return _space_for(before.text[-1])
    return ""
