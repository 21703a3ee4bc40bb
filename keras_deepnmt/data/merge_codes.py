"""Codes of subword-nmt: merges of pairs of pieces, in an order.

A word begins as its characters, of which the last has the mark of a word's end.
The first pair of the codes that the word has is merged, wherever the word has
it, and so on (Sennrich et al., 2016). SentencePiece would merge whatever gives
one of its pieces, also of other pairs, so its models cannot hold such codes.

The package subword-nmt does the same, and tests compare with it. It is not used
here: it tells no places in a word, takes a time that grows with the square of a
word's length, and would be needed wherever a model is loaded.
"""

import heapq
import re
from typing import Literal

import pydantic

# What Python takes for white space.
ALL_SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
WORD_END = "</w>"
_MOST_CACHED_WORDS = 100_000
_LONGEST_CACHED_WORD = 50

# A piece with its separator, and its first and last place in a word.
Token = tuple[str, int, int]


class MergeOptions(pydantic.BaseModel, extra="forbid"):
    """How codes cut a text; what a tokenizer's file holds of them.

    Attributes:
        codes: the two pieces of each merge, with a space between them.
        version: that of the codes. In 0.1 the mark of a word's end is a piece
            of its own, in 0.2 it belongs to the last character.
        separator: the end of each piece but the last one of a word.
        vocabulary: pieces with their separators. A merge that gives another
            piece is undone. Without any, all merges are made.
        stripped: characters that are dropped at both ends of a text.
        splits_at_all_spaces: whether pieces are also divided at each white
            space of Unicode, which is dropped.
    """

    codes: list[str]
    version: Literal["0.1", "0.2"]
    separator: str = pydantic.Field("@@", min_length=1)
    vocabulary: list[str] = []
    stripped: str = " \r\n"
    splits_at_all_spaces: bool = False

    @pydantic.field_validator("codes")
    @classmethod
    def _has_pairs(cls, codes):
        for code in codes:
            units = code.split(" ")
            if len(units) != 2 or not all(units):
                raise ValueError("be two pieces with a space between them")
        return codes


class MergeCodes:
    """Cuts words as subword-nmt does."""

    def __init__(self, options: MergeOptions):
        self.options = options
        self.pairs = [tuple(code.split(" ")) for code in options.codes]
        # Of equal pairs the first counts, and of pairs that give the same
        # piece the one that subword-nmt finds.
        self.ranks = {
            pair: rank for rank, pair in reversed([*enumerate(self.pairs)])
        }
        self._halves = {
            left + right: (left, right) for left, right in self.ranks
        }
        self._vocabulary = frozenset(options.vocabulary)
        self._no_space = re.compile(f"[^{ALL_SPACES}]+")
        self._cache: dict[str, list[Token]] = {}

    def cut(self, word: str) -> list[Token]:
        """Returns the tokens of a word, which has no space."""
        found = self._cache.get(word)
        if found is None:
            found = self._cut(word)
            if len(word) <= _LONGEST_CACHED_WORD:
                if len(self._cache) >= _MOST_CACHED_WORDS:
                    self._cache.clear()
                self._cache[word] = found
        return found

    def tokens_of(
        self, piece: str, is_last: bool, is_word: bool = False
    ) -> list[Token]:
        """Returns the tokens of a piece to which merges have led.

        The piece has no separator and no mark of a word's end. `is_last` says
        whether it is the last one of its word, and `is_word` whether it is a
        word of one character, which stays.
        """
        parts = [piece] if is_word else self._split_back(piece, is_last)
        found, begin = [], 0
        for number, part in enumerate(parts, start=1):
            end = begin + len(part)
            token = self._with_separator(part, is_last and number == len(parts))
            if self.options.splits_at_all_spaces:
                found += [
                    (match[0], *(min(begin + at, end) for at in match.span()))
                    for match in self._no_space.finditer(token)
                ]
            else:
                found.append((token, begin, end))
            begin = end
        return found

    def _cut(self, word):
        pieces = self._merged(word)
        found, start = [], 0
        for number, piece in enumerate(pieces, start=1):
            tokens = self.tokens_of(
                piece, number == len(pieces), is_word=len(word) == 1
            )
            found += [(token, start + a, start + b) for token, a, b in tokens]
            start += len(piece)
        return found

    def _merged(self, word) -> list[str]:
        """Returns the pieces to which merges lead.

        Candidates are kept in a heap, so that a long word without spaces does
        not take a time that grows with the square of its length.
        """
        if len(word) == 1:
            return [word]
        symbols: list[str | None] = [*word]
        if self.options.version == "0.1":
            symbols.append(WORD_END)
        else:
            symbols[-1] = word[-1] + WORD_END
        size = len(symbols)
        before, after = [*range(-1, size - 1)], [*range(1, size + 1)]
        candidates: list[tuple[int, int]] = []

        def consider(place):
            if place >= 0 and after[place] < size:
                pair = symbols[place], symbols[after[place]]
                rank = self.ranks.get(pair)
                if rank is not None:
                    heapq.heappush(candidates, (rank, place))

        for place in range(size):
            consider(place)
        while candidates:
            rank, changed = candidates[0][0], []
            left, right = self.pairs[rank]
            # All places of a pair come before new pairs, from left to right.
            while candidates and candidates[0][0] == rank:
                _, place = heapq.heappop(candidates)
                other = after[place]
                is_there = other < size and symbols[place] == left
                if is_there and symbols[other] == right:
                    symbols[place], symbols[other] = left + right, None
                    after[place] = after[other]
                    if after[place] < size:
                        before[after[place]] = place
                    changed.append(place)
            for place in changed:
                consider(before[place])
                consider(place)
        pieces = [symbol for symbol in symbols if symbol is not None]
        if pieces[-1] == WORD_END:
            return pieces[:-1]
        return [*pieces[:-1], pieces[-1].removesuffix(WORD_END)]

    def _split_back(self, piece, is_last) -> list[str]:
        """Undoes merges until all pieces are in the vocabulary, if they can."""
        if not self._vocabulary:
            return [piece]
        found, left_over = [], [(piece, is_last)]
        while left_over:
            part, ends = left_over.pop()
            halves = None
            if self._with_separator(part, ends) not in self._vocabulary:
                halves = self._halves.get(part + WORD_END if ends else part)
            if halves is None:
                found.append(part)
                continue
            left, right = halves
            right = right[: -len(WORD_END)] if ends else right
            left_over += [(right, ends), (left, False)]
        return found

    def _with_separator(self, piece, is_last):
        return piece if is_last else piece + self.options.separator
