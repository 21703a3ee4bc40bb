"""Puts mask symbols into training pairs: a model learns to copy them."""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import regex

from keras_deepnmt.data.kept_items import TAG_KINDS, find_kept_items
from keras_deepnmt.data.mask_symbols import mask_symbol

# Of pairs with names or numbers that are equal on both sides, so many get
# symbols for them.
MASKED_SHARE = 0.5
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}-]*")
_NAME = regex.compile(r"\p{Lu}|\p{N}")


class _Part(NamedTuple):
    begin: int
    end: int


class PairMasker:
    """Replaces what both sides of a pair have by the same symbols.

    Kept items that stand on both sides equally often are always replaced, but
    tags are not: a translator takes them out. Names and numbers that stand once
    on each side are replaced in a share of the pairs. The numbers of the
    symbols are drawn, and rise from the first item of the source to its last,
    so that a model learns all symbols alike.

    `num_symbols` is how many symbols the tokenizers have, and `share` that of
    the pairs in which names and numbers are replaced. The draws of a pair
    depend on `seed` and on its row.
    """

    def __init__(
        self, num_symbols: int, seed: int, share: float = MASKED_SHARE
    ):
        self._symbols = [mask_symbol(n) for n in range(1, num_symbols + 1)]
        self._seed = seed
        self._share = share

    def mask_block(
        self,
        first_row: int,
        sources: Sequence[str],
        targets: Sequence[str],
    ) -> tuple[list[str], list[str]]:
        """Masks the pairs of successive rows."""
        pairs = [
            self.mask(row, *pair)
            for row, pair in enumerate(
                zip(sources, targets, strict=True), start=first_row
            )
        ]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def mask(self, row: int, source: str, target: str) -> tuple[str, str]:
        """Masks the pair of a row."""
        items = find_kept_items(source), find_kept_items(target)
        parts = _equal_items(*items)
        names = _equal_names((source, target), items)
        if not parts and not names:
            return source, target
        draw = random.Random(f"{self._seed} {row}")
        if draw.random() < self._share:
            parts += names
        free = [s for s in self._symbols if s not in source + target]
        number = min(len(parts), len(free))
        parts = sorted(draw.sample(parts, number))
        chosen = sorted(draw.sample(range(len(free)), number))
        symbols = [free[place] for place in chosen]
        return tuple(
            _with_symbols(text, [part[side] for part in parts], symbols)
            for side, text in enumerate((source, target))
        )


def _equal_items(*sides) -> list[tuple[_Part, _Part]]:
    """Pairs the items, but for tags, that both sides have equally often."""
    places = [defaultdict(list), defaultdict(list)]
    for found, items in zip(places, sides, strict=True):
        for item in items:
            if item.kind not in TAG_KINDS:
                found[item.text].append(_Part(item.begin, item.end))
    return [
        pair
        for text, parts in places[0].items()
        if len(parts) == len(places[1][text])
        for pair in zip(parts, places[1][text], strict=True)
    ]


def _equal_names(texts, items) -> list[tuple[_Part, _Part]]:
    """Pairs the names and numbers that stand once on each side."""
    places = [defaultdict(list), defaultdict(list)]
    for found, text, inside in zip(places, texts, items, strict=True):
        for match in _WORD.finditer(text):
            begin, end = match.span()
            if _NAME.search(match.group()) and not any(
                begin < item.end and item.begin < end for item in inside
            ):
                found[match.group()].append(_Part(begin, end))
    return [
        (parts[0], places[1][word][0])
        for word, parts in places[0].items()
        if len(parts) == 1 == len(places[1][word])
    ]


def _with_symbols(text, parts, symbols) -> str:
    for part, symbol in sorted(zip(parts, symbols, strict=True), reverse=True):
        text = text[: part.begin] + symbol + text[part.end :]
    return text
