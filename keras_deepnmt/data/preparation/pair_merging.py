"""Goes on with byte-pair encoding where a tokenizer has stopped."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from keras_deepnmt.data.preparation.piece_rules import PieceRules


@dataclass(frozen=True)
class NewPiece:
    """A piece that a vocabulary gets.

    Attributes:
        text: the piece.
        parts: the two pieces that it joins; none for a character.
    """

    text: str
    parts: tuple[str, ...] = ()


class PairMerger:
    """Joins the most frequent pair of neighbouring pieces, again and again.

    Each word is a sequence of pieces. A character that has no piece takes part
    only after `add_character`.

    Only the words that a merge changes are counted again.

    Args:
        words: How often each word occurs; a word is a tuple of pieces and of
            characters without a piece.
        scores: The score of each piece.
        rules: The rules that new pieces keep.
        by_score: Whether the tokenizer joins pieces in the order of their
            scores, as BPE does. Then a new piece may be followed at once by
            others that join it with its neighbours.
        offered: Characters without a piece that get one where they are as
            frequent as the pairs.

    Reference:
        - [Sennrich et al., 2016](https://arxiv.org/abs/1508.07909).
    """

    def __init__(
        self,
        words: Mapping[tuple[str, ...], int],
        scores: Mapping[str, float],
        rules: PieceRules,
        by_score: bool = True,
        offered: Iterable[str] = (),
    ):
        self._scores = dict(scores)
        self._lowest = min(self._scores.values(), default=0.0)
        self._by_score = by_score
        self._offered = frozenset(offered)
        self._rules = rules
        self._allowed: dict[str, bool] = {}
        self._words = [list(word) for word in words]
        self._times = list(words.values())
        self._counts: Counter[str] = Counter()
        # The numbers of the words that have a text, or had it once.
        self._places: dict[str, list[int]] = defaultdict(list)
        for number, word in enumerate(self._words):
            for text in self._candidates(word):
                self._counts[text] += self._times[number]
                self._places[text].append(number)
        self._heap = [
            (-count, len(text), text)
            for text, count in self._counts.items()
            if count > 1
        ]
        heapq.heapify(self._heap)

    def merges(self, number: int) -> Iterator[NewPiece]:
        """Yields up to `number` pieces; each occurs at least twice.

        Of pairs that are equally frequent, that of the shortest text comes
        first, and of these the first in the order of characters.
        """
        for _ in range(number):
            text = self._most_frequent()
            if text is None:
                return
            yield self._add(text)

    def _most_frequent(self):
        while self._heap:
            count, _, text = heapq.heappop(self._heap)
            now = self._counts.get(text, 0)
            if now == -count:
                return text
            if 1 < now < -count:
                heapq.heappush(self._heap, (-now, len(text), text))
        return None

    def _add(self, text) -> NewPiece:
        numbers = sorted(set(self._places.pop(text)))
        parts = self._best_parts(text, numbers)
        before = [list(self._candidates(self._words[n])) for n in numbers]
        self._scores[text] = self._score(parts)
        join = self._join_by_score if self._by_score else self._join
        changes: Counter[str] = Counter()
        for number, old in zip(numbers, before, strict=True):
            self._words[number] = join(self._words[number], text)
            for candidate in old:
                changes[candidate] -= self._times[number]
            for candidate in self._candidates(self._words[number]):
                changes[candidate] += self._times[number]
                if candidate not in old:
                    self._places[candidate].append(number)
        del self._counts[text]
        del changes[text]
        for candidate, change in changes.items():
            count = self._counts[candidate] + change
            self._counts[candidate] = count
            if not count:
                del self._counts[candidate]
            elif change > 0 and count > 1:
                entry = (-count, len(candidate), candidate)
                heapq.heappush(self._heap, entry)
        return NewPiece(text, parts)

    def _best_parts(self, text, numbers):
        """Returns the pair with the highest scores that makes a text."""
        pairs = {
            pair
            for number in numbers
            for pair in self._known_pairs(self._words[number])
            if pair[0] + pair[1] == text
        }
        return max(
            pairs,
            key=lambda pair: (
                self._scores[pair[0]] + self._scores[pair[1]],
                pair,
            ),
            default=(),
        )

    def _score(self, parts):
        if parts and not self._by_score:
            return self._scores[parts[0]] + self._scores[parts[1]]
        self._lowest -= self._by_score
        return self._lowest

    def _candidates(self, word):
        """Yields the texts that could become pieces of a word."""
        for pair in self._known_pairs(word):
            text = pair[0] + pair[1]
            allowed = self._allowed.get(text)
            if allowed is None:
                allowed = self._rules.allow(text)
                self._allowed[text] = allowed
            if allowed and text not in self._scores:
                yield text
        if self._offered:
            for symbol in word:
                if symbol in self._offered and symbol not in self._scores:
                    yield symbol

    def _known_pairs(self, word):
        for pair in zip(word, word[1:], strict=False):
            if pair[0] in self._scores and pair[1] in self._scores:
                yield pair

    def _join(self, word, text):
        joined = []
        for symbol in word:
            if joined and joined[-1] + symbol == text:
                joined[-1] = text
            else:
                joined.append(symbol)
        return joined

    def _join_by_score(self, word, text):
        """Joins as SentencePiece does: the highest score first."""
        word = list(word)
        while True:
            best = max(
                (
                    (self._scores[a + b], -place)
                    for place, (a, b) in enumerate(
                        zip(word, word[1:], strict=False)
                    )
                    if a + b in self._scores
                ),
                default=None,
            )
            if best is None:
                return word
            place = -best[1]
            word[place : place + 2] = [word[place] + word[place + 1]]
