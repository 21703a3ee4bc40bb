"""Given text in an exported graph: what `translator.given_text` does in Python.

A piece of a given text has a number, the same for equal pieces, from 1. B are
sentences, C phrases, P tokens of a phrase, K hypotheses, M their tokens.
"""

from dataclasses import dataclass

import tensorflow as tf

from keras_deepnmt.data.graph_tokenizer import GraphTokenizer
from keras_deepnmt.masks import PADDING_ID, UNKNOWN_ID


@dataclass(frozen=True)
class GivenTexts:
    """The tokens of prefixes and phrases, filled up with 0s.

    Attributes:
        prefix_ids: `(B, L)`.
        prefix_numbers: `(B, L)`, the numbers of their pieces.
        phrase_ids: `(B, C, P)`; C and P are at least 1.
        phrase_numbers: `(B, C, P)`.
        pieces: `(N + 1,)`, the piece of each number; that of 0 is empty.
    """

    prefix_ids: tf.Tensor
    prefix_numbers: tf.Tensor
    phrase_ids: tf.Tensor
    phrase_numbers: tf.Tensor
    pieces: tf.Tensor


def read_given(
    tokenizer: GraphTokenizer, prefixes: tf.Tensor, phrases: tf.Tensor
) -> GivenTexts:
    """Segments prefixes `(B,)` and phrases `(B, C)`; empty ones are none."""
    shape = tf.shape(phrases)
    flat = tf.reshape(phrases, (-1,))
    texts = tf.concat([prefixes, flat], axis=0)
    ids, pieces = tokenizer.tokenize_parts(texts)
    unique, numbers = tf.unique(pieces.flat_values)
    numbers = pieces.with_flat_values(numbers + 1)
    num_prefixes = tf.shape(prefixes)[0]

    def of_prefixes(rows):
        return rows[:num_prefixes].to_tensor(PADDING_ID)

    def of_phrases(rows):
        rows = rows[num_prefixes:].to_tensor(PADDING_ID)
        length = tf.shape(rows)[1]
        rows = tf.reshape(rows, (shape[0], shape[1], length))
        missing = [[0, 0]] + [
            [0, tf.cast(tf.equal(size, 0), tf.int32)]
            for size in (shape[1], length)
        ]
        return tf.pad(rows, missing)

    return GivenTexts(
        *(of_prefixes(rows) for rows in (ids, numbers)),
        *(of_phrases(rows) for rows in (ids, numbers)),
        tf.concat([[""], unique], axis=0),
    )


def rows_to_find(given: GivenTexts) -> tf.Tensor:
    """Returns the rows of ids `(B, C', P)` that a search must find.

    See `given_text.rows_to_find`.
    """
    ids, numbers = given.phrase_ids, given.phrase_numbers
    is_alike = tf.reduce_all(ids[:, :, None] == ids[:, None], -1)  # (B, C, C)

    def taken_in(text_ids, text_numbers):
        """The most places in one of the texts `(B, X, L)`: `(B, C)`."""
        length = tf.shape(ids)[2]
        has_ids = _is_at(ids, _windows(text_ids, length))
        has_text = _is_at(numbers, _windows(text_numbers, length))
        is_own = has_ids & has_text  # (B, C, X, L)
        shape = tf.shape(is_own)
        # A product, so that there is no tensor (B, C, C, X, L).
        num_own = tf.matmul(
            tf.cast(is_alike, tf.float32),
            tf.reshape(
                tf.cast(is_own, tf.float32),
                (shape[0], shape[1], shape[2] * shape[3]),
            ),
        )
        is_of_alike = tf.reshape(num_own, shape) > 0
        taken = tf.cast(has_ids & ~is_of_alike, tf.int32)
        return tf.reduce_max(tf.reduce_sum(taken, axis=-1), axis=-1)

    taken = tf.maximum(
        taken_in(given.prefix_ids[:, None], given.prefix_numbers[:, None]),
        taken_in(ids, numbers),
    )
    numbers_of = tf.range(tf.shape(ids)[1])
    is_before = numbers_of[None] < numbers_of[:, None]  # (C, C)
    is_first = ~tf.reduce_any(is_alike & is_before, axis=-1)
    is_phrase = ids[..., 0] != PADDING_ID
    repeats = tf.where(is_first & is_phrase, taken, 0)
    more = tf.repeat(
        tf.reshape(ids, (-1, tf.shape(ids)[2])), tf.reshape(repeats, (-1,)), 0
    )
    rows = tf.RaggedTensor.from_row_lengths(more, tf.reduce_sum(repeats, 1))
    return tf.concat([ids, rows.to_tensor(PADDING_ID)], axis=1)


def find_given(
    ids: tf.Tensor, given: GivenTexts
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds prefixes and phrases in translations.

    As `given_text.find_given`, but a phrase that has found a place keeps it,
    also if another phrase then has none. For ids `(B, K, M)` it returns the
    characters that stand for unknown tokens, a string tensor `(B, K, M)`, empty
    for none; and whether a translation has all phrases, `(B, K)`.
    """
    shape = tf.shape(ids)
    lengths = tf.reduce_sum(
        tf.cast(given.phrase_ids != PADDING_ID, tf.int32), axis=-1
    )  # (B, C)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    lengths, phrase_ids, phrase_numbers = (
        tf.gather(x, order, batch_dims=1)
        for x in (lengths, given.phrase_ids, given.phrase_numbers)
    )
    is_equal = tf.reduce_all(
        (phrase_ids[:, :, None] == phrase_ids[:, None])
        & (phrase_numbers[:, :, None] == phrase_numbers[:, None]),
        axis=-1,
    )  # (B, C, C)
    num_phrases, length = tf.shape(phrase_ids)[1], tf.shape(phrase_ids)[2]
    windows = _windows(ids, length)  # (B, K, M, P)
    positions = tf.range(shape[2])

    def place(number, placed, places, has_all):
        own_ids = phrase_ids[:, None, None, number]  # (B, 1, 1, P)
        own_numbers = phrase_numbers[:, None, None, number]
        is_none = own_ids == PADDING_ID
        there = _windows(placed, length)
        is_free = (there == 0) | (there == own_numbers)
        fits = tf.reduce_all(
            is_none
            | ((windows == own_ids) & ((own_ids != UNKNOWN_ID) | is_free)),
            axis=-1,
        )  # (B, K, M)
        equal_ones = is_equal[:, None, number]  # (B, 1, C)
        last = tf.reduce_max(tf.where(equal_ones, places, -1), axis=-1)
        fits &= positions > last[..., None]
        first = tf.argmax(fits, axis=-1, output_type=tf.int32)  # (B, K)
        is_found = tf.reduce_any(fits, axis=-1)
        offsets = positions - first[..., None]
        size = lengths[:, None, None, number]
        is_inside = is_found[..., None] & (offsets >= 0) & (offsets < size)
        new = tf.gather(
            phrase_numbers[:, number],
            tf.reshape(
                tf.clip_by_value(offsets, 0, length - 1), (shape[0], -1)
            ),
            batch_dims=1,
        )
        is_number = tf.range(num_phrases) == number
        return (
            number + 1,
            tf.where(is_inside, tf.reshape(new, shape), placed),
            tf.where(is_number & is_found[..., None], first[..., None], places),
            has_all & (is_found | (size[..., 0] == 0)),
        )

    begun = _padded(given.prefix_numbers, shape[2])[:, None, : shape[2]]
    _, placed, _, has_all = tf.while_loop(
        lambda number, *_: number < num_phrases,
        place,
        (
            tf.constant(0),
            tf.broadcast_to(begun, shape),
            tf.fill((shape[0], shape[1], num_phrases), -1),
            tf.fill(shape[:2], True),
        ),
    )
    carried = tf.where(ids == UNKNOWN_ID, placed, 0)
    return tf.gather(given.pieces, carried), has_all


def _windows(x, length):
    """The `length` values from each place on: `(..., M)` to `(..., M, P)`."""
    size = tf.shape(x)[-1]
    places = tf.range(size)[:, None] + tf.range(length)
    return tf.gather(_padded(x, size + length), places, axis=-1)


def _padded(x, size):
    """Fills the last axis up with 0s, if it is shorter than `size`."""
    missing = tf.maximum(size - tf.shape(x)[-1], 0)
    widths = [[0, 0]] * (x.shape.rank - 1) + [[0, missing]]
    return tf.pad(x, widths)


def _is_at(phrases, windows):
    """Whether phrases `(B, C, P)` are at places `(B, X, L, P)` of texts."""
    phrases = phrases[:, :, None, None]
    is_same = (windows[:, None] == phrases) | (phrases == 0)
    return tf.reduce_all(is_same, axis=-1)
