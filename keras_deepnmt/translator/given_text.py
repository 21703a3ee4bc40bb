"""Finds in a translation the text that was given for it.

A search sees ids alone, and all unknown tokens have the same id. Which
characters an unknown token stands for is decided here: those of the prefix and
of the phrases that were found keep the characters that were given.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from keras_deepnmt.data.tokenizers import WORD_MARK
from keras_deepnmt.masks import END_ID, UNKNOWN_ID

# So many choices of places are tried where phrases with unknown characters
# compete for them.
_MOST_TRIALS = 2_000


@dataclass(frozen=True)
class GivenTokens:
    """The tokens of a given text.

    Attributes:
        ids: The ids.
        pieces: The piece of each, and of an unknown token its characters.
    """

    ids: Sequence[int] = ()
    pieces: Sequence[str] = ()

    @property
    def has_unknown(self) -> bool:
        """Whether some of its characters are not in the vocabulary."""
        return UNKNOWN_ID in self.ids


@dataclass(frozen=True)
class FoundText:
    """Where given text stands in a translation.

    Attributes:
        pieces: The given pieces by their place among the translation's tokens.
        has_prefix: Whether the translation begins with the prefix.
        missed: The phrases that have no place.
    """

    pieces: Mapping[int, str]
    has_prefix: bool
    missed: Sequence[GivenTokens]

    @property
    def is_all(self) -> bool:
        """Whether the translation has all that was given."""
        return self.has_prefix and not self.missed


def given_tokens(tokenizer, texts: Sequence[str]) -> list[GivenTokens]:
    """Segments given texts."""
    rows = tokenizer.encode_parts(list(texts))
    return [GivenTokens(*row) for row in zip(*rows, strict=True)]


def rows_to_find(
    prefix: GivenTokens, phrases: Sequence[GivenTokens]
) -> list[list[int]]:
    """Returns the rows of ids that a search must find for phrases.

    A row may be there several times, since a search finds equal rows at
    different places: once for each phrase with these ids, and once more for
    each place in the prefix, or in another phrase, that has these ids and other
    characters.
    """
    by_ids: dict[tuple[int, ...], list[GivenTokens]] = {}
    for phrase in phrases:
        by_ids.setdefault(tuple(phrase.ids), []).append(phrase)
    rows = [list(phrase.ids) for phrase in phrases]
    for ids, alike in by_ids.items():
        if UNKNOWN_ID in ids:
            taken = (
                sum(
                    all(_differs(other, place, phrase) for phrase in alike)
                    for place in _occurrences(other.ids, ids)
                )
                for other in (prefix, *phrases)
            )
            rows += [list(ids)] * max(taken)
    return rows


def find_given(
    ids: Sequence[int], prefix: GivenTokens, phrases: Sequence[GivenTokens]
) -> FoundText:
    """Finds the prefix and the phrases in a translation.

    Each unknown token stands for one text. So phrases with the same ids and
    other characters have different places, as equal phrases have; others may
    overlap. As many phrases as possible have a place: longer ones choose first,
    equally long ones in their order, and each takes the first place it can.
    """
    pieces: dict[int, str] = {}
    has_prefix = list(ids[: len(prefix.ids)]) == list(prefix.ids)
    if has_prefix:
        pieces.update(enumerate(prefix.pieces))
    ordered = sorted(phrases, key=lambda phrase: -len(phrase.ids))
    places = _choose_places(ids, pieces, ordered)
    for phrase, place in zip(ordered, places, strict=True):
        if place is not None:
            pieces.update(enumerate(phrase.pieces, start=place))
    missed = [
        phrase
        for phrase, place in zip(ordered, places, strict=True)
        if place is None
    ]
    return FoundText(dict(sorted(pieces.items())), has_prefix, missed)


def text_with_given(
    tokenizer, ids: Sequence[int], given: Iterable[tuple[int, str]]
) -> str:
    """Joins tokens to a text; unknown ones may stand for given characters.

    What follows an end token in `ids` is left out. `given` has places of tokens
    and their pieces.
    """
    ids = list(ids)
    if END_ID in ids:
        ids = ids[: ids.index(END_ID)]
    pieces = [[piece] for piece in tokenizer.pieces(ids)]
    for place, piece in given:
        if ids[place] == UNKNOWN_ID:
            pieces[place] = as_characters(piece, is_first=place == 0)
    return tokenizer.decode_pieces([part for parts in pieces for part in parts])


def as_characters(piece: str, is_first: bool = False) -> list[str]:
    """Returns the characters of an unknown token, for `decode_pieces`.

    As a whole it may be the name of another piece, such as `</s>`. A mark of a
    space is only in those of a vocabulary of whole words.
    """
    if is_first:
        piece = piece.removeprefix(WORD_MARK)
    return list(piece.replace(WORD_MARK, " "))


def _choose_places(ids, texts, phrases):
    """Returns the place of each phrase, `None` for those that have none.

    `texts` are the given pieces that have a place already.
    """
    found = [
        [
            place
            for place in _occurrences(ids, phrase.ids)
            if _fits(texts, phrase, place)
        ]
        for phrase in phrases
    ]
    number, most = len(phrases), _most_places(phrases, found)
    best: list[int | None] = [None] * number
    best_count, trials = -1, 0

    def choose(place_of, texts, count):
        nonlocal best, best_count, trials
        trials += 1
        n = len(place_of)
        if min(count + number - n, most) <= best_count or trials > _MOST_TRIALS:
            return
        if n == number:
            best, best_count = place_of, count
            return
        for place in found[n]:
            if _is_after_equal(phrases, place_of, place) and _fits(
                texts, phrases[n], place
            ):
                own = _unknown_texts(phrases[n], place)
                choose([*place_of, place], {**texts, **own}, count + 1)
                if best_count == most:
                    return
        choose([*place_of, None], texts, count)

    choose([], texts, 0)
    return best


def _most_places(phrases, found):
    """A bound: phrases with the same ids have different places."""
    places: dict[tuple[int, ...], set[int]] = {}
    for phrase, own in zip(phrases, found, strict=True):
        places.setdefault(tuple(phrase.ids), set()).update(own)
    counts = Counter(tuple(phrase.ids) for phrase in phrases)
    return sum(min(counts[ids], len(own)) for ids, own in places.items())


def _is_after_equal(phrases, place_of, place):
    """Whether a place is behind those of earlier phrases that are equal."""
    phrase = phrases[len(place_of)]
    return all(
        other != phrase or (taken is not None and taken < place)
        for other, taken in zip(phrases, place_of, strict=False)
    )


def _fits(texts, phrase, place):
    """Whether the unknown tokens of a phrase may stand for its characters."""
    return all(
        texts.get(position, text) == text
        for position, text in _unknown_texts(phrase, place).items()
    )


def _unknown_texts(phrase, place):
    return {
        place + number: piece
        for number, (token, piece) in enumerate(
            zip(phrase.ids, phrase.pieces, strict=True)
        )
        if token == UNKNOWN_ID
    }


def _differs(other, place, phrase):
    """Whether a text has the ids of a phrase at a place, not its characters."""
    end = place + len(phrase.pieces)
    return list(other.pieces[place:end]) != list(phrase.pieces)


def _occurrences(ids, part):
    """The places where ids contain others; occurrences may overlap."""
    ids, part = list(ids), list(part)
    return [
        place
        for place in range(len(ids) - len(part) + 1)
        if ids[place : place + len(part)] == part
    ]
