"""Translates for a server with the SavedModel of an export."""

import math
from collections.abc import Sequence
from pathlib import Path

from keras_deepnmt.server.engine import Engine, Translation
from keras_deepnmt.serving import SavedModelClient

# An estimate, by which sentences are sorted.
_CHARACTERS_PER_TOKEN = 4


class ExportEngine(Engine):
    """Translates with the SavedModel of an export.

    Args:
        version_dir: the folder of a version.
    """

    def __init__(self, version_dir: str | Path):
        self._client = SavedModelClient(version_dir)
        self.most_hypotheses = self._client.description["num_beams"]

    def warm_up(self) -> None:
        # TensorFlow optimizes each graph when it runs first.
        self.translate(1, ["a", "a dog"])
        self.translate(self.most_hypotheses, ["a"])

    def lengths(self, texts: Sequence[str]) -> list[int]:
        # The tokenizer is a part of the graph.
        return [math.ceil(len(t) / _CHARACTERS_PER_TOKEN) + 1 for t in texts]

    def translate(
        self, number: int, texts: Sequence[str]
    ) -> list[list[Translation]]:
        nbest = self._client.translate_nbest(list(texts), number)
        return [list(map(Translation.of, found)) for found in nbest]
