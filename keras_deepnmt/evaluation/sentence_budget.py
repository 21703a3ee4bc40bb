"""How many sentences BLEU may cost while a model trains."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_deepnmt.data.batches.epoch_order import shuffled_order

PILOT_SENTENCES = 50
FEWEST_SENTENCES = 100
_STREAM = 20_05


class SentenceBudget:
    """Chooses so many sentences that validations keep to a share of the time.

    With `p` seconds an update, `u` updates between two validations, `s`
    seconds a sentence and `b` the share, the number of sentences is

        n = b / (1 - b) * p * u / s,

    so that `n s` is the share `b` of `n s + p u`. It is chosen once: the
    validations of a run are then comparable, which they would not be on other
    sentences. `s` is measured on a model that has hardly trained, which
    translates at greatest length; should translation become slower all the
    same, the share grows and the sentences stay.

    Fewer than `FEWEST_SENTENCES` say nothing: that many are always taken.
    Validate less often where even they cost too much.

    Args:
        share: float in (0, 1). Most of the wall time.
        updates_between: int. Updates between two validations.
        seed: int. Seed of the sentences.
        file: where the choice is kept, for a run that goes on. Defaults to
            nowhere.

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
        self._known = {}
        if file is not None and file.is_file():
            self._known = json.loads(file.read_text(encoding="utf-8"))

    def note_pace(self, seconds_per_update: float) -> None:
        """Says how fast training is; the first one counts.

        Args:
            seconds_per_update: without compilation and validation.
        """
        if "seconds_per_update" not in self._known:
            self._keep(seconds_per_update=seconds_per_update)

    def choose(
        self,
        num_sentences: int,
        seconds_of: Callable[[np.ndarray], float],
    ) -> np.ndarray:
        """Chooses the sentences, or takes up what was chosen before.

        Args:
            num_sentences: how many there are.
            seconds_of: translates and scores the sentences of these numbers,
                and gives the seconds it took.

        Returns:
            Their numbers, in rising order.
        """
        order = shuffled_order(num_sentences, self.seed, _STREAM)
        if self._known.get("of_sentences") != num_sentences:
            size = self._affordable(order, seconds_of)
            self._keep(sentences=size, of_sentences=num_sentences)
        return np.sort(order[: self._known["sentences"]])

    def _affordable(self, order, seconds_of):
        if len(order) <= FEWEST_SENTENCES:
            return len(order)
        pilot = order[:PILOT_SENTENCES]
        seconds_of(pilot)  # compiles
        seconds_per_sentence = max(seconds_of(pilot), 1e-9) / len(pilot)
        training = self._known.get("seconds_per_update", 0.0)
        training *= self.updates_between
        allowed = self.share / (1 - self.share) * training
        size = int(allowed / seconds_per_sentence)
        return min(max(size, FEWEST_SENTENCES), len(order))

    def _keep(self, **more):
        self._known |= more
        if self.file is None:
            return
        partial = self.file.with_name(f".{self.file.name}.partial")
        content = json.dumps({**self._known, "seed": self.seed}, indent=2)
        partial.write_text(content + "\n", encoding="utf-8")
        os.replace(partial, self.file)
