"""Limits the sentences for BLEU to a share of the training time."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from pydantic import BaseModel, Field

from keras_deepnmt.data.batches.epoch_order import shuffled_order
from keras_deepnmt.files import write_json
from keras_deepnmt.json_files import read_json

PILOT_SENTENCES = 50
FEWEST_SENTENCES = 100
_STREAM = 20_05
_REMEDY = (
    "Delete it to go on; the sentences of the validations are then chosen anew."
)


class _Stored(BaseModel, extra="allow"):
    """The values of the file that are read, and their rules."""

    seconds_per_update: float = Field(0.0, ge=0)
    sentences: int = Field(0, ge=1)
    of_sentences: int = 0


class SentenceBudget:
    """Chooses sentences whose translation takes a given share of the time.

    With `p` seconds per update, `u` updates between two validations, `s`
    seconds per sentence and the share `b`, the number of sentences is

        n = b / (1 - b) * p * u / s,

    so that `n s` is the share `b` of `n s + p u`. The sentences are chosen
    once, so that all later validations of a run can be compared; a validation
    before `p` is known is of all sentences. `s` is measured on
    a model that has hardly been trained, whose translations are longest; if
    translation becomes slower later, the share grows and the sentences stay
    the same.

    At least `FEWEST_SENTENCES` (100) are chosen, since a score of fewer is not
    reliable. Validate less often if even these take too long.

    Args:
        share: float in (0, 1). Largest share of the wall time.
        updates_between: int. Updates between two validations.
        seed: int. Seed of the choice.
        file: JSON file that stores the choice for a resumed run. Defaults to
            none.

    Example:
    >>> budget = SentenceBudget(0.05, updates_between=1000)
    >>> budget.note_pace(0.1)
    >>> len(budget.choose(3000, seconds_of=lambda rows: 0.02 * len(rows)))
    263
    """

    def __init__(
        self,
        share: float,
        updates_between: int,
        seed: int = 0,
        file: Path | None = None,
    ):
        self.share = share
        self.updates_between = updates_between
        self.seed = seed
        self.file = file
        self._stored = {}
        if file is not None and file.is_file():
            self._stored = read_json(file, _Stored, _REMEDY)

    @property
    def can_choose(self) -> bool:
        """Whether the speed of training, or an earlier choice, is known."""
        return not self._stored.keys().isdisjoint(
            ("seconds_per_update", "sentences")
        )

    def note_pace(self, seconds_per_update: float) -> None:
        """Records the speed of training; later calls are ignored.

        Args:
            seconds_per_update: mean time, without compilation and validation.
        """
        if "seconds_per_update" not in self._stored:
            self._store(seconds_per_update=seconds_per_update)

    def choose(
        self,
        num_sentences: int,
        seconds_of: Callable[[np.ndarray], float],
    ) -> np.ndarray:
        """Chooses the sentences, or returns the stored choice.

        Args:
            num_sentences: number of sentences to choose from.
            seconds_of: function that translates and scores the sentences with
                the given indices and returns the seconds that it took.

        Returns:
            Indices of the chosen sentences, in ascending order.
        """
        order = shuffled_order(num_sentences, self.seed, _STREAM)
        if (
            "sentences" not in self._stored
            or self._stored.get("of_sentences") != num_sentences
        ):
            size = self._affordable_size(order, seconds_of)
            self._store(sentences=size, of_sentences=num_sentences)
        return np.sort(order[: self._stored["sentences"]])

    def _affordable_size(self, order, seconds_of):
        if len(order) <= FEWEST_SENTENCES:
            return len(order)
        pilot = order[:PILOT_SENTENCES]
        seconds_of(pilot)  # compiles
        seconds_per_sentence = max(seconds_of(pilot), 1e-9) / len(pilot)
        training = self._stored.get("seconds_per_update", 0.0)
        training *= self.updates_between
        allowed = self.share / (1 - self.share) * training
        size = int(allowed / seconds_per_sentence)
        return min(max(size, FEWEST_SENTENCES), len(order))

    def _store(self, **values):
        self._stored |= values
        if self.file is None:
            return
        write_json(self.file, {**self._stored, "seed": self.seed})
