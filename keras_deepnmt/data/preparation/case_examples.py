"""Training pairs that are also shown in capitals.

A model that never reads a line in capitals cannot translate one, also where
case is factored: it does not know the symbol for them.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from keras_deepnmt.data.batches.epoch_order import draw_bits
from keras_deepnmt.data.factored_case import any_of

# The share of the pairs, where case is factored.
DEFAULT_SHARE = 0.02
_STREAM = 107
_WORD = re.compile(r"\S+")


class CaseExamples:
    """Draws the training pairs that are shown in other case too.

    `share` is that of the pairs that are shown in capitals; as many are shown
    with capitalized words. `user_defined_symbols` stay as they are. `counts`
    says how many pairs were made in each case; whoever takes them counts them.

    Example:
    >>> examples = CaseExamples(1.0, 0)
    >>> [texts for _, _, texts in examples.of(0, [("ein Hund", "a dog")])]
    [('EIN HUND', 'A DOG'), ('Ein Hund', 'A Dog')]
    """

    def __init__(
        self, share: float, seed: int, user_defined_symbols: Sequence[str] = ()
    ):
        self.share = share
        self.counts = {"all_caps": 0, "capitalized": 0}
        self._seed = seed
        fixed = any_of(user_defined_symbols)
        self._fixed = re.compile(f"({fixed})") if fixed else None

    def of(
        self, first_row: int, pairs: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[int, str, tuple[str, str]]]:
        """Iterates over the pairs of a block that are drawn, in other case.

        Whether a pair is drawn depends on the seed, the first row of its block
        and its place in it alone. A pair whose source has no other case is
        left out.

        Yields the place of the pair in the block, the name of the case, and the
        two texts.
        """
        if not self.share:
            return
        drawn = [
            draw_bits(len(pairs), self._seed, _STREAM, number, first_row)
            < self.share * 2.0**64
            for number in range(len(self.counts))
        ]
        changes = dict(zip(self.counts, (all_caps, capitalized), strict=True))
        for place in np.flatnonzero(np.any(drawn, axis=0)).tolist():
            for (name, change), rows in zip(
                changes.items(), drawn, strict=True
            ):
                if rows[place]:
                    texts = tuple(
                        self._changed(t, change) for t in pairs[place]
                    )
                    if texts[0] != pairs[place][0]:
                        yield place, name, texts

    def _changed(self, text, change):
        if self._fixed is None:
            return change(text)
        parts = self._fixed.split(text)
        parts[::2] = map(change, parts[::2])
        return "".join(parts)


def all_caps(text: str) -> str:
    """Returns a text in capitals."""
    return text.upper()


def capitalized(text: str) -> str:
    """Returns a text with a capital as the first letter of each word.

    Words are those between white space.
    """
    return _WORD.sub(_capitalize, text)


def _capitalize(match):
    word = match[0]
    for place, letter in enumerate(word):
        if letter.isalpha():
            return word[:place] + letter.title() + word[place + 1 :]
    return word
