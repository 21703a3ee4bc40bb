"""The one source of chance of the demo corpus."""

import random


class Chooser:
    """The one source of chance of a corpus.

    Built on `random.Random.random`, whose numbers for a seed are the same in
    every version of Python, unlike those of `choice` and `sample`.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Returns true with that probability."""
        return self._random() < probability

    def pick(self, items):
        """Returns one item of a sequence, each as likely as the others."""
        return items[int(self._random() * len(items))]
