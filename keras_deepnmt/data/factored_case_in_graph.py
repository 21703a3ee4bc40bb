"""Inserts and removes case symbols by TensorFlow operations.

The regular expressions of TensorFlow cannot look ahead, so the characters of
all texts are looked at together, as one row of codes.
"""

import numpy as np
import tensorflow as tf

from keras_deepnmt.data.factored_case import (
    BRACKETS,
    CAPITAL,
    CAPITALS,
    DROPPED,
    LAST_SYMBOLS,
)
from keras_deepnmt.data.letter_case import (
    LOWER_CASE,
    NEUTRAL,
    TO_UPPER,
    UPPER_CASE,
)

_OTHER, _UPPER, _LOWER, _NEUTRAL = range(4)


class CaseInGraph:
    """Does in a graph what `FactoredCase` does in Python.

    Args:
        fixed_pattern: a regular expression of what no symbol may be inserted
            into; empty for nothing.
    """

    def __init__(self, fixed_pattern: str):
        self._fixed_pattern = fixed_pattern

    def insert_symbols(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns `FactoredCase.before` of a text or of several."""
        shape = tf.shape(texts)
        texts = tf.strings.regex_replace(
            tf.reshape(texts, [-1]), f"[{DROPPED}]", ""
        )
        if self._fixed_pattern:
            texts = tf.strings.regex_replace(
                texts, self._fixed_pattern, rf"{BRACKETS[0]}\0{BRACKETS[1]}"
            )
        # No text ends with a letter now, nor with something fixed.
        rows, codes = _characters(tf.strings.join([texts, "\n"]))
        letters, row = rows.flat_values, rows.value_rowids()
        begins, ends = (codes == ord(bracket) for bracket in BRACKETS)
        depth = tf.cumsum(_int(begins)) - tf.cumsum(_int(ends))
        kinds = _kinds(codes)
        free_kinds = tf.where((depth > 0) | ends, _OTHER, kinds)
        capital, capitals = _symbols(kinds, free_kinds, begins)
        dropped = begins | ends | (row != _next(row, -1))
        letters = tf.where(dropped, "", letters)
        letters = tf.where(capital, CAPITAL + " " + letters, letters)
        letters = tf.where(capitals, CAPITALS + " " + letters, letters)
        return _joined(rows, letters, shape)

    def remove_symbols(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns `FactoredCase.after` of a text or of several."""
        shape = tf.shape(texts)
        texts = tf.strings.regex_replace(
            tf.reshape(texts, [-1]), rf"{LAST_SYMBOLS}\z", ""
        )
        # No text begins with a letter now.
        rows, codes = _characters(tf.strings.join(["\n", texts]))
        letters, row = rows.flat_values, rows.value_rowids()
        is_capital, is_capitals = codes == ord(CAPITAL), codes == ord(CAPITALS)
        is_symbol = is_capital | is_capitals
        hidden = (codes == ord(" ")) & _previous(is_symbol, False)
        is_letter = _kinds(codes) != _OTHER
        after_capital = _previous(is_capital, False) | (
            _previous(hidden, False)
            & _previous(_previous(is_capital, False), False)
        )
        # The last character that ends what `CAPITALS` stands for.
        limits = is_symbol | ~(is_letter | hidden)
        places = tf.where(limits)[:, 0]
        last = tf.gather(places, tf.cumsum(_int(limits)) - 1)
        raised = is_letter & (after_capital | tf.gather(is_capitals, last))
        has_partner, partners = _upper_case(codes)
        letters = tf.where(raised & has_partner, partners, letters)
        dropped = is_symbol | hidden | (row != _previous(row, -1))
        return _joined(rows, tf.where(dropped, "", letters), shape)


def _symbols(kinds, free_kinds, begins):
    """Returns which characters get which symbol.

    `free_kinds` are the kinds without what is fixed, and `begins` is true where
    something fixed begins.
    """
    in_block = (free_kinds == _UPPER) | (free_kinds == _NEUTRAL)
    is_upper = free_kinds == _UPPER
    starts = _int(in_block & ~_previous(in_block, False))
    number = tf.reduce_sum(starts)
    # Everything outside of the blocks of capitals is in a last one.
    block = tf.where(in_block, tf.cumsum(starts) - 1, number)
    place = tf.range(tf.size(kinds))

    def first(chosen):
        values = tf.where(chosen, place, tf.size(kinds))
        return tf.math.unsorted_segment_min(values, block, number + 1)

    def last(chosen):
        values = tf.where(chosen, place, -1)
        return tf.math.unsorted_segment_max(values, block, number + 1)

    count = tf.math.unsorted_segment_sum(_int(is_upper), block, number + 1)
    after = tf.maximum(last(in_block), -1) + 1
    lower_follows = tf.gather(_padded(free_kinds), after) == _LOWER
    fixed_follows = tf.gather(_padded(begins), after) & (
        tf.gather(_padded(kinds), after + 1) != _OTHER
    )
    run = count - _int(lower_follows)

    def of_block(values):
        return tf.gather(values, block)

    is_first = place == of_block(first(is_upper))
    is_last = place == of_block(last(is_upper))
    single = (
        is_first & of_block(run == 1)
        | is_last & of_block(lower_follows)
        | of_block(fixed_follows)
    )
    several = is_first & of_block((run > 1) & ~fixed_follows)
    return is_upper & single, is_upper & several


def _characters(texts):
    """Splits texts into characters, and returns also their codes, in a row."""
    rows = tf.strings.unicode_split(texts, "UTF-8")
    return rows, tf.strings.unicode_decode(texts, "UTF-8").flat_values


def _joined(rows, letters, shape):
    rows = rows.with_flat_values(letters)
    return tf.reshape(tf.strings.reduce_join(rows, axis=-1), shape)


def _kinds(codes):
    table = np.full(0x110000, _OTHER, "int32")
    for kind, letters in (
        (_UPPER, UPPER_CASE),
        (_LOWER, LOWER_CASE),
        (_NEUTRAL, NEUTRAL),
    ):
        table[[ord(letter) for letter in letters]] = kind
    starts = np.flatnonzero(np.diff(table, prepend=-1)).astype("int32")
    interval = tf.searchsorted(starts, codes, side="right") - 1
    return tf.gather(table[starts], interval)


def _upper_case(codes):
    """Returns which characters have an upper-case partner, and which one."""
    lower = sorted(TO_UPPER)
    known = np.array([ord(letter) for letter in lower], "int32")
    upper = tf.constant([TO_UPPER[letter] for letter in lower])
    place = tf.minimum(tf.searchsorted(known, codes), len(known) - 1)
    return tf.gather(known, place) == codes, tf.gather(upper, place)


def _int(flags):
    return tf.cast(flags, tf.int32)


def _previous(values, before):
    """Returns the value of the character before each one."""
    return tf.concat([[before], values], 0)[:-1]


def _next(values, after):
    return tf.concat([values, [after]], 0)[1:]


def _padded(values):
    """Adds what follows the last character."""
    return tf.concat([values, tf.zeros(2, values.dtype)], 0)
