"""The random choices of the demo corpus."""

import random


class Chooser:
    """Makes all random choices of a corpus.

    It uses `random.Random.random`, whose numbers for a seed are the same in
    every version of Python, unlike those of `choice` and `sample`.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Returns true with the given probability."""
        return self._random() < probability

    def pick(self, items):
        """Returns one item of a sequence, all with the same probability."""
        return items[int(self._random() * len(items))]
