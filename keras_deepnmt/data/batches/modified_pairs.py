"""Pairs that are changed before a model reads them.

Each row of a store is there once as it is, and once for each modifier: of n
rows, the row `r + v n` is the row r as the modifier v changes it. Weights
decide how often each of them is drawn, and so the plan of batches knows in
advance which pairs are changed in which epoch, and how much room they need.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_deepnmt.data.batches.aligned_terms import with_aligned_terms
from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_transforms import BatchTransform
from keras_deepnmt.data.batches.epoch_order import draw_bits
from keras_deepnmt.data.context_mark import CONTEXT_MARK
from keras_deepnmt.data.mask_symbols import mask_symbols
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.tags import own_tag, tagged_text, untagged_text
from keras_deepnmt.data.terms import TERM_MARKS
from keras_deepnmt.data.token_links import LinkStore
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.masks import UNKNOWN_ID

_STREAM = 105
MERGE = "merge"
TERMS = "terms"
# One word of so many gets a typing error.
_WORDS_PER_TYPO = 10
_SHORTEST_WORD = 4
_WORD = re.compile(r"\S+")
# Rows whose lengths are measured to estimate those of the others.
_NUM_SAMPLED = 2048
_ROWS_AT_A_TIME = 1_000_000

Texts = tuple[str, str]
Draw = Callable[[], float]


def _keep_symbols(change, text, symbols):
    """Changes the words of a text that contain no symbol."""
    return _WORD.sub(
        lambda word: (
            word[0]
            if any(symbol in word[0] for symbol in symbols)
            else change(word[0])
        ),
        text,
    )


def with_typos(text: str, draw: Draw, symbols: Sequence[str] = ()) -> str:
    """Returns a text with typing errors in about a tenth of its words.

    There is at least one, if a word has four letters or more. `draw` returns
    numbers in [0, 1), and words with one of `symbols` stay as they are.
    """
    spans = [
        match.span()
        for match in _WORD.finditer(text)
        if len(match[0]) >= _SHORTEST_WORD
        and match[0].isalpha()
        and not any(symbol in match[0] for symbol in symbols)
    ]
    if not spans:
        return text
    for _ in range(max(1, round(len(text.split()) / _WORDS_PER_TYPO))):
        start, end = spans[int(draw() * len(spans))]
        place = start + int(draw() * (end - start - 1))
        kind = int(draw() * 3)
        one, two = text[place], text[place + 1]
        # The other words keep their places: a letter takes that of another
        # one, which is left out.
        changed = (two + one, two + two, one + one)[kind]
        text = text[:place] + changed + text[place + 2 :]
    return text


def in_capitals(text: str, draw: Draw, symbols: Sequence[str] = ()) -> str:
    """Returns a text in capitals, except for the `symbols` in it."""
    return _keep_symbols(str.upper, text, symbols)


def in_title_case(text: str, draw: Draw, symbols: Sequence[str] = ()) -> str:
    """Begins each word of a text, except for its `symbols`, with a capital."""
    return _keep_symbols(lambda w: w[:1].title() + w[1:], text, symbols)


# What a modifier does to the text of the source, and of the target.
_CHANGES: Mapping[str, tuple[Callable | None, Callable | None]] = {
    "typos": (with_typos, None),
    "upper_case": (in_capitals, in_capitals),
    "title_case": (in_title_case, in_title_case),
}


def _possible_tags(symbols, marks):
    """The symbols that lines may have as tags of their own.

    They are not `marks`, nor markup, which has a symbol that closes it.
    """
    return {
        symbol
        for symbol in set(symbols) - set(marks)
        if not symbol.startswith("</")
        and f"</{symbol.removeprefix('<')}" not in symbols
    }


class ModifiedPairs:
    """The pairs of a store, as they are and as modifiers change them.

    Args:
        store: the pairs.
        tokenizers: of the source and of the target.
        modifiers: names of the modifiers: `typos`, `upper_case`, `title_case`,
            `merge` and `terms`.
        ends: the row after the last one of each corpus; no pair is merged with
            one of another corpus.
        max_length: largest length of a side with its special id; pairs that
            would be longer stay as they are.
        tags: those of the corpora. Other symbols that a side begins with are
            tags, too, if the other side of the pair does not have them. Of two
            pairs that are merged the second loses its tags; they are not
            merged if their tags differ.
        links: the word alignments of the pairs, for `terms`.

    Attributes:
        lengths: as in `PairStore`, of all rows; estimates for those that are
            changed, which most of them do not exceed.
    """

    def __init__(
        self,
        store: PairStore,
        tokenizers: tuple[Tokenizer, Tokenizer],
        modifiers: Sequence[str],
        ends: Sequence[int],
        max_length: int,
        tags: Sequence[str],
        links: LinkStore | None = None,
    ):
        self.modifiers, self._links = tuple(modifiers), links
        self._store, self._tokenizers = store, tokenizers
        self._symbols = [t.user_defined_symbols for t in tokenizers]
        marks = [CONTEXT_MARK, *TERM_MARKS, *mask_symbols(*tokenizers)]
        self._corpus_tags = frozenset(tags)
        self._possible_tags = [
            self._corpus_tags | _possible_tags(symbols, marks)
            for symbols in self._symbols
        ]
        # The rows that are not merged with the next one.
        self._stay = np.zeros(len(store), bool)
        self._stay[np.asarray(ends, "int64") - 1] = True
        plain = np.asarray(store.lengths)
        self._longest = np.maximum(plain.max(axis=0), max_length)
        self.lengths = np.concatenate(
            [plain, *map(self._estimate, self.modifiers)]
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def weights(
        self, weights: np.ndarray | None, shares: Mapping[str, float]
    ) -> np.ndarray:
        """Returns the weight of each row.

        `weights` are those of the rows of the store, `None` for 1 each, and
        `shares` the share of the pairs that each modifier changes.
        """
        if weights is None:
            weights = np.ones(len(self._store), "float32")
        plain = 1 - sum(shares.values())
        parts = [plain, *(shares.get(name, 0.0) for name in self.modifiers)]
        return np.concatenate(
            [weights * np.float32(max(0.0, part)) for part in parts]
        )

    def read(self, rows: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Reads pairs, as `PairStore` does; only merging has changed them."""
        variants, rows = np.divmod(np.asarray(rows, "int64"), len(self._store))
        pairs = self._store.read(rows)
        if MERGE not in self.modifiers:
            return pairs
        merged = variants == 1 + self.modifiers.index(MERGE)
        merged &= ~self._stay[rows]
        places = np.flatnonzero(merged).tolist()
        following = self._store.read(rows[merged] + 1)
        for place, pair in zip(places, following, strict=True):
            pairs[place] = self._joined(pairs[place], pair)
        return pairs

    def change(
        self,
        row: int,
        pair: tuple[np.ndarray, np.ndarray],
        draw: Draw,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns a pair that was read as the modifier of its row changes it.

        It stays as it is if that takes text of an unknown token, or characters
        that have no piece.
        """
        variant = int(row) // len(self._store)
        name = self.modifiers[variant - 1] if variant else None
        if name == TERMS:
            return self._with_terms(int(row) % len(self._store), pair, draw)
        sides = []
        for change, tokenizer, symbols, ids in zip(
            _CHANGES.get(name, (None, None)),
            self._tokenizers,
            self._symbols,
            pair,
            strict=True,
        ):
            if change is None:
                sides.append(ids)
                continue
            (text,) = tokenizer.decode([ids])
            tag = own_tag(text, symbols)
            words = untagged_text(text, symbols)
            changed = change(words, draw, symbols)
            (new_ids,) = tokenizer.encode([tagged_text(changed, tag)])
            if UNKNOWN_ID in ids or UNKNOWN_ID in new_ids:
                return pair
            sides.append(ids if changed == words else new_ids)
        return sides[0], sides[1]

    def _with_terms(self, row, pair, draw):
        """Marks words of a pair that was read, a row of the store."""
        source, target = self._tokenizers
        texts = tuple(
            tokenizer.decode([ids])[0]
            for tokenizer, ids in zip(self._tokenizers, pair, strict=True)
        )
        # The links are those of tokens that must be found again.
        for tokenizer, text, ids in zip(
            self._tokenizers, texts, pair, strict=True
        ):
            if not np.array_equal(tokenizer.encode([text])[0], ids):
                return pair
        (links,) = self._links.read([row])
        marked = with_aligned_terms(texts, (source, target), links, draw)
        (new_ids,) = source.encode([marked])
        if marked == texts[0] or UNKNOWN_ID in new_ids:
            return pair
        return new_ids, pair[1]

    def _joined(self, pair, other):
        """Joins two pairs to one, with the tag of the first alone.

        It stays as it is if the other has another tag, or the same source but
        for capitals: examples of case stand after their pair.
        """
        if any(UNKNOWN_ID in ids for ids in (*pair, *other)):
            return pair
        firsts, seconds = [
            tuple(
                tokenizer.decode([ids])[0]
                for tokenizer, ids in zip(self._tokenizers, one, strict=True)
            )
            for one in (pair, other)
        ]
        (tags, rests), (others, more) = map(self._split_tags, (firsts, seconds))
        if others != tags or rests[0].casefold() == more[0].casefold():
            return pair
        sides = []
        for number, tokenizer in enumerate(self._tokenizers):
            # So the text is divided when it is translated.
            (ids,) = tokenizer.encode([f"{firsts[number]} {more[number]}"])
            has_room = len(ids) <= len(pair[number]) + len(other[number])
            if not more[number] or not has_room or UNKNOWN_ID in ids:
                return pair
            sides.append(ids)
        return sides[0], sides[1]

    def _split_tags(self, texts):
        """Returns the tags that the sides of a pair begin with, and the rest.

        A symbol that the other side has, too, is a part of the text, unless it
        is the tag of a corpus.
        """
        words = [set(text.split()) for text in texts]
        found, rests = [], []
        for text, other, possible in zip(
            texts, reversed(words), self._possible_tags, strict=True
        ):
            tags = []
            while (tag := own_tag(text, possible)) is not None:
                if tag in other and tag not in self._corpus_tags:
                    break
                tags.append(tag)
                text = untagged_text(text, [tag])
            found.append(tags)
            rests.append(text)
        return found, rests

    def _estimate(self, name):
        """Estimates the lengths of all rows as a modifier changes them."""
        plain = np.asarray(self._store.lengths)
        if name == MERGE:
            # Without an end token, as one of the two has.
            both = plain[:-1].astype("int64") + plain[1:] - 1
            both = np.concatenate([both, plain[-1:]])
            self._stay |= (both > self._longest).any(axis=1)
            return np.where(self._stay[:, None], plain, both).astype("uint16")
        # For marks of terms, only the pairs that have links.
        rows = np.arange(len(plain))
        if name == TERMS:
            rows = self._links.linked_rows()
        if not len(rows):
            return plain.astype("uint16")
        changing = rows
        rows = rows[
            np.unique(np.linspace(0, len(rows) - 1, _NUM_SAMPLED).astype(int))
        ]
        lengths = plain.astype("int64")
        read = self._store.read(rows)
        variant = 1 + self.modifiers.index(name)
        changed = [
            self.change(
                row + variant * len(plain),
                pair,
                random.Random(int(row)).random,
            )
            for row, pair in zip(rows.tolist(), read, strict=True)
        ]
        # The others need no room.
        both = [
            (old, new)
            for old, new in zip(read, changed, strict=True)
            if not all(map(np.array_equal, old, new))
        ]
        if not both:
            return plain.astype("uint16")
        for side in (0, 1):
            growth = [
                (1 + len(new[side])) / (1 + len(old[side])) for old, new in both
            ]
            # Most of them have room, and all of them as they are.
            factor = np.quantile(growth, 0.9)
            before = plain[changing, side]
            lengths[changing, side] = np.clip(
                np.ceil(before * factor), before, self._longest[side]
            )
        return lengths.astype("uint16")


class Modification(BatchTransform):
    """Changes the pairs of a batch as the modifiers of their rows do.

    A pair that has no room in its batch is drawn again, a few times, and then
    stays as it is. `plan` tells which rows are in which batch.
    """

    def __init__(
        self,
        pairs: ModifiedPairs,
        plan: BatchPlan,
        seed: int = 0,
        tries: int = 3,
    ):
        self._pairs, self._plan = pairs, plan
        self._seed, self._tries = seed, tries

    def change_pairs(self, pairs, batch_shape, step):
        rows = self._plan.batch(step)[1]
        seeds = draw_bits(len(rows), self._seed, _STREAM, step, 0, 0).tolist()
        room = batch_shape.source_length, batch_shape.target_length
        changed = []
        for row, pair, seed in zip(rows.tolist(), pairs, seeds, strict=True):
            # Python guarantees the numbers of `random` for all versions.
            draw = random.Random(seed).random
            for _ in range(self._tries):
                found = self._pairs.change(row, pair, draw)
                if all(map(lambda ids, most: len(ids) < most, found, room)):
                    pair = found
                    break
            changed.append(pair)
        return changed
