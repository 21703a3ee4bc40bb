"""Cuts words by codes of subword-nmt with TensorFlow operations.

The pieces of all words are numbers in one row, which becomes shorter with each
round of merges. The tables are constants of the graph.
"""

import numpy as np
import tensorflow as tf

from keras_deepnmt.data.merge_codes import ALL_SPACES, WORD_END, MergeCodes

# The number of a character that no code names. It is never merged.
_OTHER = 0
# What a piece is in its word: one of them, the last one, or all of it.
_INNER, _LAST, _WORD = range(3)
_NEVER = np.iinfo("int32").max


class MergesInGraph:
    """Does in a graph what `MergeStep.before` does in Python."""

    def __init__(self, codes: MergeCodes):
        self._options = codes.options
        units = {unit for pair in codes.pairs for unit in pair}
        letters = {c for unit in units for c in unit.removesuffix(WORD_END)}
        letters |= {*ALL_SPACES} - {" "}
        symbols = [WORD_END, *sorted(letters)]
        if codes.options.version == "0.2":
            symbols += [letter + WORD_END for letter in sorted(letters)]
        symbols += [*units, *(left + right for left, right in codes.pairs)]
        symbols = [*dict.fromkeys(symbols)]
        numbers = {symbol: n for n, symbol in enumerate(symbols, start=1)}
        self._size = len(symbols) + 1
        self._end = numbers[WORD_END]
        self._letters = _Table(
            {
                ord(c): [numbers[c], numbers.get(c + WORD_END, 0)]
                for c in letters
            }
        )
        self._merges = _Table(
            {
                numbers[left] * self._size + numbers[right]: [
                    rank,
                    numbers[left + right],
                ]
                for (left, right), rank in codes.ranks.items()
            }
        )
        self._tokens = np.full((3, self._size), b"", object)
        for symbol, number in numbers.items():
            bare = symbol
            if symbol != WORD_END:
                bare = symbol.removesuffix(WORD_END)
            found = {
                _INNER: codes.tokens_of(symbol, is_last=False),
                _LAST: codes.tokens_of(bare, is_last=True),
                _WORD: codes.tokens_of(symbol, is_last=True, is_word=True),
            }
            for kind, tokens in found.items():
                joined = " ".join([token for token, *_ in tokens])
                self._tokens[kind, number] = joined.encode()

    def cut(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns a text or several with spaces between the pieces."""
        shape = tf.shape(texts)
        texts = tf.reshape(texts, [-1])
        ends = "".join(f"\\x{{{ord(c):x}}}" for c in self._options.stripped)
        if ends:
            texts = tf.strings.regex_replace(
                texts, rf"\A[{ends}]+|[{ends}]+\z", ""
            )
        words = tf.strings.split(texts, sep=" ")
        is_word = words.flat_values != ""
        text = tf.boolean_mask(words.value_rowids(), is_word)
        tokens, word = self._cut(tf.boolean_mask(words.flat_values, is_word))
        rows = tf.RaggedTensor.from_value_rowids(
            tokens, tf.gather(text, word), nrows=tf.size(texts, tf.int64)
        )
        joined = tf.strings.reduce_join(rows, axis=-1, separator=" ")
        return tf.reshape(joined, shape)

    def _cut(self, words):
        """Returns the tokens of words, several in one text, and their words."""
        rows = tf.strings.unicode_split(words, "UTF-8")
        letters, word = rows.flat_values, rows.value_rowids()
        codes = tf.strings.unicode_decode(words, "UTF-8").flat_values
        _, found = self._letters.look_up(tf.cast(codes, tf.int64))
        is_last = word != _next(word, -1)
        is_alone = is_last & (word != _previous(word, -1))
        if self._options.version == "0.1":
            symbols, places, word = self._with_ends(found[:, 0], word, is_last)
        else:
            is_marked = is_last & ~is_alone
            symbols = tf.where(is_marked, found[:, 1], found[:, 0])
            places = tf.range(tf.size(letters))
        symbols, places, word = self._merged(symbols, places, word)
        if self._options.version == "0.1":
            is_kept = (symbols != self._end) | (word == _next(word, -1))
            symbols, places, word = (
                tf.boolean_mask(x, is_kept) for x in (symbols, places, word)
            )
        return self._as_tokens(symbols, places, word, letters, is_alone)

    def _with_ends(self, symbols, word, is_last):
        """Adds the mark of a word's end after words of several characters."""
        places = tf.range(tf.size(symbols))
        number = tf.where(is_last & (word == _previous(word, -1)), 2, 1)
        places = tf.repeat(places, number)
        is_mark = places == _previous(places, -1)
        symbols = tf.where(~is_mark, tf.gather(symbols, places), self._end)
        return symbols, places, tf.gather(word, places)

    def _merged(self, symbols, places, word):
        """Merges until no pair of the codes is left."""

        def merge(symbols, places, word, _):
            pairs = symbols * self._size + _next(symbols, 0)
            is_pair = (word == _next(word, -1)) & (symbols != _OTHER)
            is_found, found = self._merges.look_up(tf.where(is_pair, pairs, -1))
            rank = tf.where(is_found, found[:, 0], _NEVER)
            best = tf.math.unsorted_segment_min(
                rank, word, tf.reduce_max(tf.concat([word, [0]], 0)) + 1
            )
            chosen = is_found & (rank == tf.gather(best, word))
            # Of pairs that overlap, as in "xxx", every second one is merged.
            place = tf.range(tf.size(chosen))
            begins = chosen & ~_previous(chosen, False)
            run = tf.cumsum(tf.cast(begins, tf.int32))
            first = tf.concat([[0], tf.boolean_mask(place, begins)], 0)
            chosen &= (place - tf.gather(first, run)) % 2 == 0
            symbols = tf.where(chosen, found[:, 1], symbols)
            is_kept = ~_previous(chosen, False)
            return (
                *(tf.boolean_mask(x, is_kept) for x in (symbols, places, word)),
                tf.reduce_any(chosen),
            )

        any_size = tf.TensorShape([None])
        *found, _ = tf.while_loop(
            lambda *state: state[-1],
            merge,
            (symbols, places, word, tf.constant(True)),
            shape_invariants=(any_size, any_size, any_size, tf.TensorShape([])),
        )
        return found

    def _as_tokens(self, symbols, places, word, letters, is_alone):
        kind = tf.where(word != _next(word, -1), _LAST, _INNER)
        kind = tf.where(tf.gather(is_alone, places), _WORD, kind)
        tables = tf.constant(self._tokens.reshape(-1), tf.string)
        tokens = tf.gather(
            tables, tf.cast(kind, tf.int64) * self._size + symbols
        )
        # Characters that no code names; the last one of a word has no mark.
        others = tf.gather(letters, places)
        separators = tf.where(kind == _INNER, self._options.separator, "")
        others = tf.strings.join([others, separators])
        tokens = tf.where(symbols == _OTHER, others, tokens)
        is_there = tokens != ""  # of a white space nothing may be left
        return tf.boolean_mask(tokens, is_there), tf.boolean_mask(
            word, is_there
        )


class _Table:
    """Values by an integer, which is not negative.

    Not one of `tf.lookup`, which the object that is exported must hold.
    """

    def __init__(self, entries: dict[int, list[int]]):
        ordered = sorted(entries.items())
        self._keys = np.array([-1, *(key for key, _ in ordered)], "int64")
        self._values = np.array([[0, 0], *(v for _, v in ordered)], "int64")

    def look_up(self, keys: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns whether keys are there, and their values, else zeros."""
        known, values = tf.constant(self._keys), tf.constant(self._values)
        place = tf.searchsorted(known, keys)
        place = tf.minimum(place, len(self._keys) - 1)
        is_found = (tf.gather(known, place) == keys) & (keys >= 0)
        return is_found, tf.gather(values, tf.where(is_found, place, 0))


def _previous(values, before):
    """Returns the value before each one."""
    return tf.concat([tf.cast([before], values.dtype), values], 0)[:-1]


def _next(values, after):
    return tf.concat([values, tf.cast([after], values.dtype)], 0)[1:]
