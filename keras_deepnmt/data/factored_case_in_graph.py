"""Inserts and removes case symbols by TensorFlow operations.

The regular expressions of TensorFlow cannot look ahead, so the characters of
all texts are looked at together, as one row of codes.
"""

import numpy as np
import tensorflow as tf

from keras_deepnmt.data.letter_case import (
    ALL_CAPITALS,
    BRACKETS,
    CAPITAL,
    CAPITALS,
    CASE_SYMBOLS,
    DROPPED,
    EACH_CAPITAL,
    LAST_SYMBOLS,
    LEAST_ALL_CAPITALS,
    LEAST_EACH_CAPITAL,
    LOWER_CASE,
    NEUTRAL,
    SPACES,
    TO_UPPER,
    UPPER_CASE,
)

# From `_UPPER` on, they are letters.
_OTHER, _SPACE, _UPPER, _LOWER, _NEUTRAL = range(5)


class CaseInGraph:
    """Does in a graph what `FactoredCase` does in Python.

    `fixed_pattern` is a regular expression of what no symbol may be inserted
    into, and `loose_pattern` the same in upper, lower or mixed case. `mark`
    stands between the sentences of a text, which are texts by themselves. Where
    there is nothing of the kind, an argument is empty.
    """

    def __init__(self, fixed_pattern: str, loose_pattern: str, mark: str = ""):
        self._mark = mark
        self._fixed_pattern = fixed_pattern
        self._loose_pattern = loose_pattern

    def insert_symbols(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns `FactoredCase.before` of a text or of several."""
        texts = tf.strings.regex_replace(texts, f"[{DROPPED}]", "")
        return self._by_sentence(self._inserted, texts)

    def remove_symbols(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns `FactoredCase.after` of a text or of several."""
        return self._by_sentence(self._removed, texts)

    def _by_sentence(self, change, texts):
        """Calls a function of texts `(B,)` for the sentences of all texts."""
        rows = tf.reshape(texts, [-1])
        if self._mark:
            parts = tf.strings.split(rows, self._mark)
            # A separator of `reduce_join` is left out after empty parts.
            changed = tf.strings.join([self._mark, change(parts.flat_values)])
            rows = tf.strings.regex_replace(
                _joined(parts, changed), rf"\A{self._mark}", ""
            )
        else:
            rows = change(rows)
        return tf.reshape(rows, tf.shape(texts))

    def _inserted(self, texts):
        # No text ends with a letter now, nor with something fixed.
        rows, codes = _characters(
            tf.strings.join([self._in_brackets(texts), "\n"])
        )
        letters, row = rows.flat_values, _int(rows.value_rowids())
        begins, ends = (codes == ord(bracket) for bracket in BRACKETS)
        dropped = begins | ends | (row != _next(row, -1))
        letters = tf.where(dropped, "", letters)
        symbols = _Symbols(
            codes, row, begins, ends, self._has_one_in_another_case(texts)
        )
        for symbol, places in symbols.places():
            letters = tf.where(places, f"{symbol} " + letters, letters)
        return _joined(rows, letters)

    def _removed(self, texts):
        for pattern, kept in (
            (rf"{LAST_SYMBOLS}\z", ""),
            (f"([{CASE_SYMBOLS}]) ", r"\1"),
        ):
            texts = tf.strings.regex_replace(texts, pattern, kept)
        texts = _raise_next_letters(texts)
        return _raise_words(self._in_brackets(texts))

    def _in_brackets(self, texts):
        """Puts brackets around what is fixed."""
        if not self._fixed_pattern:
            return texts
        return tf.strings.regex_replace(
            texts, self._fixed_pattern, rf"{BRACKETS[0]}\0{BRACKETS[1]}"
        )

    def _has_one_in_another_case(self, texts):
        """Returns which texts have something fixed in another case."""
        if not self._fixed_pattern:
            return tf.zeros_like(texts, tf.bool)
        numbers = []
        for pattern in (self._fixed_pattern, self._loose_pattern):
            marked = tf.strings.regex_replace(texts, pattern, BRACKETS[0])
            codes = tf.strings.unicode_decode(marked, "UTF-8")
            is_mark = _int(codes == ord(BRACKETS[0]))
            numbers.append(tf.reduce_sum(is_mark, axis=-1))
        return numbers[0] != numbers[1]


def _raise_next_letters(texts):
    """Applies `CAPITAL` and `CAPITALS`, and leaves all symbols in the texts."""
    # No text begins with a letter now.
    rows, codes = _characters(tf.strings.join(["\n", texts]))
    capital, capitals, *others = _symbols_among(codes)
    is_letter = _kinds(codes) >= _UPPER
    limits = capital | capitals | others[0] | others[1] | ~is_letter
    raised = _previous(capital, False) | _at_last(limits, capitals)
    letters = _raised(rows.flat_values, codes, is_letter & raised)
    row = rows.value_rowids()
    is_first = row != _previous(row, -1)
    return _joined(rows, tf.where(is_first, "", letters))


def _raise_words(texts):
    """Applies `ALL_CAPITALS` and `EACH_CAPITAL`; drops symbols and brackets."""
    rows, codes = _characters(tf.strings.join(["\n", texts]))
    capital, capitals, all_capitals, each_capital = _symbols_among(codes)
    is_symbol = capital | capitals | all_capitals | each_capital
    row = rows.value_rowids()
    limits = is_symbol | (row != _previous(row, -1))
    begins, ends = (codes == ord(bracket) for bracket in BRACKETS)
    is_free = tf.cumsum(_int(begins)) == tf.cumsum(_int(ends))
    kinds = tf.where(is_free, _kinds(codes), _OTHER)
    has_case = (kinds == _UPPER) | (kinds == _LOWER)
    so_far = tf.cumsum(_int(has_case))
    word = limits | (kinds == _SPACE)
    begins_word = has_case & (so_far == _at_last(word, so_far) + 1)
    raised = is_free & (
        _at_last(limits, all_capitals)
        | begins_word & _at_last(limits, each_capital)
    )
    letters = _raised(rows.flat_values, codes, raised)
    dropped = limits | begins | ends
    return _joined(rows, tf.where(dropped, "", letters))


class _Symbols:
    """Finds the letters that get a symbol.

    `codes` are the characters of all texts, `row` the number of the text of
    each, and `begins` and `ends` are true at the brackets around what is fixed.
    `excluded` are the texts in which words have symbols of their own.
    """

    def __init__(self, codes, row, begins, ends, excluded):
        self.row, self.begins = row, begins
        # One row more, since there may be none.
        self.excluded = tf.concat([excluded, [True]], 0)
        depth = tf.cumsum(_int(begins)) - tf.cumsum(_int(ends))
        self.kinds = _kinds(codes)
        self.free_kinds = tf.where((depth > 0) | ends, _OTHER, self.kinds)
        self.place = tf.range(tf.size(codes))
        self.num_rows = tf.size(excluded) + 1
        in_run = (self.free_kinds == _UPPER) | (self.free_kinds == _NEUTRAL)
        self.in_run = in_run
        self.is_upper = self.free_kinds == _UPPER
        starts = _int(in_run & ~_previous(in_run, False))
        number = tf.reduce_sum(starts)
        # What is in no run of capitals is in a last one, without capitals.
        self.run = tf.where(in_run, tf.cumsum(starts) - 1, number)
        self.num_runs = number + 1

    def places(self):
        """Yields each symbol, and which characters get it."""
        single, several = self._of_runs()
        count = self._sum(self.is_upper, self.run, self.num_runs)
        first = self._first(self.is_upper, self.run, self.num_runs)
        row = self._last(self.in_run, self.run, self.num_runs, self.row)
        row = tf.maximum(row, 0)

        def last_runs(limit):
            """The runs after a place of their row, and numbers by row."""
            chosen = (count > 0) & (first > tf.gather(limit, row))
            return chosen, self._sum(chosen, row, self.num_rows)

        limit = self._last(self.free_kinds == _LOWER, self.row, self.num_rows)
        capitals, runs = last_runs(limit)
        letters = self._sum(count * _int(capitals), row, self.num_rows)
        has_all = (runs >= LEAST_ALL_CAPITALS) & (letters > runs)
        has_all &= ~self.excluded
        limit = self._last(self._not_capitalized(), self.row, self.num_rows)
        capitalized, runs = last_runs(limit)
        has_each = (runs >= LEAST_EACH_CAPITAL) & ~has_all & ~self.excluded
        hidden = tf.zeros_like(self.is_upper)
        for symbol, chosen, has in (
            (ALL_CAPITALS, capitals, has_all),
            (EACH_CAPITAL, capitalized, has_each),
        ):
            chosen &= tf.gather(has, row)
            places = self.is_upper & tf.gather(chosen, self.run)
            start = self._first(places, self.row, self.num_rows)
            yield symbol, places & (self.place == tf.gather(start, self.row))
            hidden |= places
        yield CAPITAL, single & ~hidden
        yield CAPITALS, several & ~hidden

    def _of_runs(self):
        """Returns which characters get `CAPITAL` and `CAPITALS`."""
        count = self._sum(self.is_upper, self.run, self.num_runs)
        after = self._last(self.in_run, self.run, self.num_runs) + 1
        lower_follows = tf.gather(_padded(self.free_kinds), after) == _LOWER
        fixed_follows = tf.gather(_padded(self.begins), after) & (
            tf.gather(_padded(self.kinds), after + 1) >= _UPPER
        )
        run = count - _int(lower_follows)

        def of_run(values):
            return tf.gather(values, self.run)

        first = self._first(self.is_upper, self.run, self.num_runs)
        last = self._last(self.is_upper, self.run, self.num_runs)
        is_first = self.place == of_run(first)
        single = (
            is_first & of_run(run == 1)
            | (self.place == of_run(last)) & of_run(lower_follows)
            | of_run(fixed_follows)
        )
        several = is_first & of_run((run > 1) & ~fixed_follows)
        return self.is_upper & single, self.is_upper & several

    def _not_capitalized(self):
        """Returns which characters are in words that are not capitalized."""
        is_first = self.row != _previous(self.row, -1)
        starts = _int((self.free_kinds == _SPACE) | is_first)
        word, number = tf.cumsum(starts) - 1, tf.reduce_sum(starts)
        is_upper = self.is_upper
        has_case = is_upper | (self.free_kinds == _LOWER)
        count = self._sum(is_upper, word, number)
        first = self._first(has_case, word, number)
        # That of a word without letters is the one after all.
        first_is_upper = tf.gather(_padded(is_upper), first)
        is_other = ~first_is_upper & (first < tf.size(self.kinds))
        return tf.gather(is_other | (count > 1), word)

    def _sum(self, values, segment, number):
        return tf.math.unsorted_segment_sum(_int(values), segment, number)

    def _first(self, chosen, segment, number):
        """The first chosen place of each segment, or else the number of all."""
        values = tf.where(chosen, self.place, tf.size(self.kinds))
        found = tf.math.unsorted_segment_min(values, segment, number)
        return tf.minimum(found, tf.size(self.kinds))

    def _last(self, chosen, segment, number, values=None):
        """The last chosen place, or value, of each segment, or else -1."""
        values = tf.where(chosen, self.place if values is None else values, -1)
        found = tf.math.unsorted_segment_max(values, segment, number)
        return tf.maximum(found, -1)


def _at_last(chosen, values):
    """Returns the value at the last chosen place up to each one."""
    places = tf.where(chosen)[:, 0]
    last = tf.gather(places, tf.cumsum(_int(chosen)) - 1)
    return tf.gather(values, last)


def _characters(texts):
    """Splits texts into characters, and returns also their codes, in a row."""
    rows = tf.strings.unicode_split(texts, "UTF-8")
    return rows, tf.strings.unicode_decode(texts, "UTF-8").flat_values


def _joined(rows, letters):
    rows = rows.with_flat_values(letters)
    return tf.strings.reduce_join(rows, axis=-1)


def _kinds(codes):
    table = np.full(0x110000, _OTHER, "int32")
    for kind, letters in (
        (_SPACE, SPACES),
        (_UPPER, UPPER_CASE),
        (_LOWER, LOWER_CASE),
        (_NEUTRAL, NEUTRAL),
    ):
        table[[ord(letter) for letter in letters]] = kind
    starts = np.flatnonzero(np.diff(table, prepend=-1)).astype("int32")
    interval = tf.searchsorted(starts, codes, side="right") - 1
    return tf.gather(table[starts], interval)


def _symbols_among(codes):
    return [codes == ord(symbol) for symbol in CASE_SYMBOLS]


def _raised(letters, codes, chosen):
    """Replaces the chosen letters by their upper-case partners, if any."""
    lower = sorted(TO_UPPER)
    known = np.array([ord(letter) for letter in lower], "int32")
    upper = tf.constant([TO_UPPER[letter] for letter in lower])
    place = tf.minimum(tf.searchsorted(known, codes), len(known) - 1)
    chosen &= tf.gather(known, place) == codes
    return tf.where(chosen, tf.gather(upper, place), letters)


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
