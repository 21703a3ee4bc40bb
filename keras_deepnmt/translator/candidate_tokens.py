"""The target tokens that a batch is searched with, of few numbers."""

from collections.abc import Iterable, Sequence

import numpy as np

from keras_deepnmt.data.shortlists import Shortlists

# With a larger part of the vocabulary there is nothing to gain.
_LARGEST_PART = 0.7


class CandidateTokens:
    """Chooses the target tokens of batches from shortlists.

    Args:
        shortlists: `data.Shortlists` of the vocabularies, or `None`.
        vocabulary_size: number of target tokens.
    """

    def __init__(self, shortlists: Shortlists | None, vocabulary_size: int):
        self._shortlists = shortlists
        self._vocabulary_size = vocabulary_size
        self._largest = _LARGEST_PART * vocabulary_size
        self._number = 0

    def plan(self, batches: Iterable[Sequence[Sequence[int]]]) -> None:
        """Sets the number of tokens for the batches of source rows of a call.

        It is one number for all, since each is compiled for itself. Batches
        that are searched with all tokens do not count.
        """
        self._number = 0
        if self._shortlists is None:
            return
        for rows in batches:
            number = padded_number(len(self._shortlists.candidates(rows)))
            if number <= self._largest:
                self._number = max(self._number, number)

    def of(
        self,
        rows: Sequence[Sequence[int]],
        needed: Iterable[Sequence[int]] = (),
    ) -> np.ndarray | None:
        """Returns the tokens of a batch: int32 `(W,)`, rising.

        Args:
            rows: its source rows.
            needed: rows of target ids that must be among them.

        Returns:
            The tokens; `None` where all of the vocabulary is used.
        """
        if self._shortlists is None:
            return None
        ids = [self._shortlists.candidates(rows), *map(np.asarray, needed)]
        chosen = np.unique(np.concatenate(ids).astype("int32"))
        number = padded_number(len(chosen))
        if number > self._largest:
            return None
        number = max(self._number, number)
        # The tokens of small ids are the frequent ones, as a rule.
        others = np.setdiff1d(
            np.arange(self._vocabulary_size, dtype="int32"), chosen
        )
        return np.sort(np.concatenate([chosen, others[: number - len(chosen)]]))


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
