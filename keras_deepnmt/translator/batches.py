"""Batches of few shapes, since each shape is compiled once.

Here are the limits of batches, their numbers of rows, their padded lengths, and
the target tokens that they are searched with.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np

from keras_deepnmt.data.shortlists import Shortlists
from keras_deepnmt.masks import PADDING_ID
from keras_deepnmt.xla import tuned

# Tokens per sentence of a full batch. Only longer sentences make it smaller.
TOKENS_PER_SENTENCE = 256


class BatchLimits:
    """The largest numbers of sentences and tokens computed together.

    They may be changed later. `batch_tokens` is 256 times `batch_size` unless
    it is given.

    `compilation_padding` is the largest number of positions of padding that a
    call may add to sources so that one shape fewer is compiled: few sentences
    of a length are then searched with longer ones. A larger number makes the
    first call faster and later calls slower.
    """

    def __init__(self, batch_size: int, batch_tokens: int | None = None):
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.compilation_padding = tuned.COMPILATION_PADDING

    @property
    def batch_size(self) -> int:
        return self._batch_size

    @batch_size.setter
    def batch_size(self, batch_size: int) -> None:
        self._batch_size = as_integer("batch_size", batch_size, 1)

    @property
    def batch_tokens(self) -> int:
        if self._batch_tokens is None:
            return TOKENS_PER_SENTENCE * self.batch_size
        return self._batch_tokens

    @batch_tokens.setter
    def batch_tokens(self, batch_tokens: int | None) -> None:
        if batch_tokens is not None:
            batch_tokens = as_integer("batch_tokens", batch_tokens, 1)
        self._batch_tokens = batch_tokens

    @property
    def given_batch_tokens(self) -> int | None:
        """`batch_tokens`, or `None` where they follow from `batch_size`."""
        return self._batch_tokens

    @property
    def compilation_padding(self) -> int:
        return self._compilation_padding

    @compilation_padding.setter
    def compilation_padding(self, compilation_padding: int) -> None:
        self._compilation_padding = as_integer(
            "compilation_padding", compilation_padding, 0
        )


class BatchLimitAttributes:
    """Makes the limits of `self.batch_limits` attributes of an object."""

    batch_limits: BatchLimits

    @property
    def batch_size(self) -> int:
        return self.batch_limits.batch_size

    @batch_size.setter
    def batch_size(self, batch_size: int) -> None:
        self.batch_limits.batch_size = batch_size

    @property
    def batch_tokens(self) -> int:
        return self.batch_limits.batch_tokens

    @batch_tokens.setter
    def batch_tokens(self, batch_tokens: int | None) -> None:
        self.batch_limits.batch_tokens = batch_tokens

    @property
    def compilation_padding(self) -> int:
        return self.batch_limits.compilation_padding

    @compilation_padding.setter
    def compilation_padding(self, compilation_padding: int) -> None:
        self.batch_limits.compilation_padding = compilation_padding


def as_integer(name: str, number: float, least: int) -> int:
    """Returns an argument as an int; it may be a float without fraction.

    Anything else, and what is below `least`, raises a `ValueError` with the
    `name` of the argument.

    Example:
    >>> as_integer("batch_size", 32.0, 1)
    32
    """
    is_number = isinstance(number, Real)
    if not is_number or not number >= least or number % 1:
        raise ValueError(
            f"`{name}` must be an integer of at least {least}. "
            f"Received: {name}={number}"
        )
    return int(number)


def padded_length(length: int, largest: int | None = None) -> int:
    """Rounds a length in tokens up to one of a few lengths, at most `largest`.

    These are 8, 16, 32, 64, and then 96, 128, 192, 256 and so on, which grow by
    a third or a half: padding of short sentences costs little.
    """
    padded = 8
    while padded < length:
        is_power_of_two = padded & (padded - 1) == 0
        if padded < 64:
            padded *= 2
        else:
            padded = padded * 3 // 2 if is_power_of_two else padded * 4 // 3
    return padded if largest is None else min(padded, largest)


def padded_rows(rows: int, largest: int) -> int:
    """Rounds a number of rows up to one of a few, at most `largest`.

    These are 1, 4, 16, 64 and so on, `largest`, and its half, rounded up.
    """
    padded = 1
    while padded < rows:
        padded *= 4
    half = -(-largest // 2)
    return min(n for n in (padded, half, largest) if n >= rows)


def most_rows(tokens_of_row: int, batch_size: int, batch_tokens: int) -> int:
    """Returns how many rows of some tokens each a batch may have, at least 1.

    Example:
    >>> [most_rows(tokens, 32, 8192) for tokens in (24, 1024, 9999)]
    [32, 8, 1]
    """
    return max(1, min(batch_size, batch_tokens // tokens_of_row))


def length_batches(
    lengths: Sequence[int],
    batch_size: int,
    batch_tokens: int,
    tokens_of_rows: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Groups rows of similar length; returns their numbers.

    The shortest rows come first; rows of equal length and tokens keep their
    order. A group has at most `batch_size` rows and at most `batch_tokens`
    tokens, unless it is a single row: all rows count as the one with the most
    of `tokens_of_rows`, by default their padded lengths. A group also ends
    where that saves much padding.
    """
    if tokens_of_rows is None:
        tokens_of_rows = [padded_length(int(length)) for length in lengths]
    order = np.lexsort((tokens_of_rows, lengths))
    groups, start, tokens = [], 0, 0
    for end in range(1, len(order) + 1):
        tokens = max(tokens, tokens_of_rows[order[end - 1]])
        if end < len(order):
            longest = int(lengths[order[end]])
            most = most_rows(
                max(tokens, tokens_of_rows[order[end]]),
                batch_size,
                batch_tokens,
            )
            added = padded_length(longest) - padded_length(
                int(lengths[order[end - 1]])
            )
            saves_much = (end - start) * added >= tuned.MUCH_PADDING
            if end - start < most and not saves_much:
                continue
        groups.append(order[start:end])
        start, tokens = end, 0
    return groups


def padded_batch(
    rows: Sequence[Sequence[int]], batch_size: int, length: int
) -> np.ndarray:
    """Puts rows of ids into an int32 array `(batch_size, length)`.

    Missing rows and missing ids are padding.

    Example:
    >>> padded_batch([[7, 3]], 2, 3).tolist()
    [[7, 3, 0], [0, 0, 0]]
    """
    batch = np.full((batch_size, length), PADDING_ID, "int32")
    for row, ids in enumerate(rows):
        batch[row, : len(ids)] = ids
    return batch


def padded_phrases(
    rows: Sequence[Sequence[Sequence[int]]], batch_size: int
) -> np.ndarray:
    """Puts phrases of ids into an int32 array `(batch_size, C, P)`.

    C and P are powers of 2, so that there are few shapes.

    Example:
    >>> padded_phrases([[[7, 8, 9], [5]], []], 2).shape
    (2, 2, 4)
    """
    most = max(1, *map(len, rows))
    longest = max((len(ids) for phrases in rows for ids in phrases), default=1)
    shape = tuple(1 << (size - 1).bit_length() for size in (most, longest))
    batch = np.full((batch_size, *shape), PADDING_ID, "int32")
    for row, phrases in enumerate(rows):
        for place, ids in enumerate(phrases):
            batch[row, place, : len(ids)] = ids
    return batch


class Shape(NamedTuple):
    """The shape of an array of source ids."""

    rows: int
    length: int


def choose_shapes(
    batches: Sequence[tuple[int, Shape]],
    most_rows: Callable[[int], int],
    compilation_padding: int,
) -> Mapping[int, Shape]:
    """Chooses shapes for the batches of each length, as each shape is compiled.

    Batches of one length all have the rows of the largest of them. Batches of
    few sentences are padded to the length of longer ones, where the padding is
    less than `compilation_padding`. The choice does not depend on earlier
    searches, so that a continued run computes the same and compiles nothing.

    `batches` has for each batch its number of sentences and its own shape, of a
    padded length. `most_rows` returns the largest number of rows that batches
    of a length may have.
    """
    num_sentences, rows = {}, {}
    for number, shape in batches:
        length = shape.length
        num_sentences[length] = num_sentences.get(length, 0) + number
        rows[length] = max(rows.get(length, 0), shape.rows)
    lengths = sorted(rows)
    # For the first n lengths, the shortest first: the least cost in positions,
    # and how many of these lengths the last shape is for.
    best = [(0, 0)]
    for end, longest in enumerate(lengths, 1):
        choices, padding = [], 0
        for start in reversed(range(end)):
            length = lengths[start]
            padding += num_sentences[length] * (longest - length)
            if start < end - 1 and rows[length] > most_rows(longest):
                break
            cost = best[start][0] + padding + compilation_padding
            choices.append((cost, end - start))
        best.append(min(choices))
    chosen = {}
    end = len(lengths)
    while end:
        joined = lengths[end - best[end][1] : end]
        shape = Shape(max(rows[length] for length in joined), joined[-1])
        chosen.update(dict.fromkeys(joined, shape))
        end -= len(joined)
    return chosen


class CandidateTokens:
    """Chooses the target tokens of batches from shortlists.

    Without shortlists all of the vocabulary is used.
    """

    def __init__(self, shortlists: Shortlists | None, vocabulary_size: int):
        self._shortlists = shortlists
        self._vocabulary_size = vocabulary_size
        self._largest = tuned.LARGEST_PART * vocabulary_size
        self._number = 0

    def plan(
        self,
        batches: Sequence[Sequence[Sequence[int]]],
        needed: Iterable[Iterable[Sequence[int]]],
    ) -> None:
        """Sets the number of tokens for the batches of a call.

        It is one number for all, since each number is compiled separately.
        Batches that are searched with all tokens do not count.

        `batches` has the source rows of each batch, and `needed` for each of
        them rows of target ids that must be among its tokens.
        """
        self._number = 0
        if self._shortlists is None:
            return
        for rows, ids in zip(batches, needed, strict=True):
            number = padded_number(len(self._least(rows, ids)))
            if number <= self._largest:
                self._number = max(self._number, number)

    def of(
        self,
        rows: Sequence[Sequence[int]],
        needed: Iterable[Sequence[int]] = (),
    ) -> np.ndarray | None:
        """Returns the tokens of a batch: int32 `(W,)`, ascending.

        They are `None` where all of the vocabulary is used. `rows` are the
        source rows of the batch, and the ids in `needed` must be among its
        tokens.
        """
        if self._shortlists is None:
            return None
        chosen = self._least(rows, needed)
        number = padded_number(len(chosen))
        if number > self._largest:
            return None
        number = max(self._number, number)
        # Tokens with small ids are usually the frequent ones.
        others = np.setdiff1d(
            np.arange(self._vocabulary_size, dtype="int32"), chosen
        )
        return np.sort(np.concatenate([chosen, others[: number - len(chosen)]]))

    def _least(self, rows, needed):
        """The tokens that a batch must have, ascending."""
        ids = [self._shortlists.candidates(rows), *map(np.asarray, needed)]
        return np.unique(np.concatenate(ids).astype("int32"))


def padded_number(number: int) -> int:
    """Rounds a number of tokens up to one of a few.

    Example:
    >>> [padded_number(number) for number in (7, 257, 500, 4000)]
    [256, 384, 512, 4096]
    """
    padded = 256
    while padded < number:
        is_power_of_two = padded & (padded - 1) == 0
        padded = padded * 3 // 2 if is_power_of_two else padded * 4 // 3
    return padded
