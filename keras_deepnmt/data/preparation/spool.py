"""Temporary files of pairs, between the passes of `prepare`."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

# One block per core is in memory at a time, as text and as ids.
BLOCK_PAIRS = 1024
# Where a pair is from: the number of its corpus, from 0, and its line, from 1.
ORIGIN = np.dtype([("corpus", "<u4"), ("line", "<u4")])


class Spool:
    """Temporary files in `folder` with the kept pairs of a split.

    A third file has the origin of each pair. `tags` are those of the corpora
    that origins number; the texts in the files are without tags.
    """

    def __init__(
        self, folder: Path, split: str, tags: Sequence[str | None] = ()
    ):
        self.paths = folder / f"{split}.source", folder / f"{split}.target"
        self.pairs = 0
        self._tags = list(tags)
        self._origins_path = folder / f"{split}.origins"
        self._files = None
        self._origins = None

    def __enter__(self) -> "Spool":
        self._files = [
            open(path, "w", encoding="utf-8", newline="\n")
            for path in self.paths
        ]
        self._origins = open(self._origins_path, "wb")
        return self

    def __exit__(self, *error):
        for file in (*self._files, self._origins):
            file.close()

    def write(self, pairs: list[tuple[str, str]], origins: np.ndarray):
        """Appends pairs and their origins, an array of type `ORIGIN`."""
        for file, side in zip(
            self._files, zip(*pairs, strict=True), strict=True
        ):
            file.write("\n".join(side) + "\n")
        self._origins.write(origins.tobytes())
        self.pairs += len(pairs)

    def origins(self, rows: np.ndarray) -> np.ndarray:
        """Returns the origins of some rows, when all pairs are written."""
        if not len(rows):
            return np.zeros(0, ORIGIN)
        return np.memmap(self._origins_path, ORIGIN, "r")[rows]

    def tags(self, rows: np.ndarray) -> list[str | None]:
        """Returns the tags of some rows, when all pairs are written."""
        if not any(self._tags):
            return [None] * len(rows)
        return [self._tags[n] for n in self.origins(rows)["corpus"].tolist()]

    def blocks(self) -> Iterator[tuple[list[str], list[str]]]:
        """Iterates over `(sources, targets)` of `BLOCK_PAIRS` pairs each."""
        with (
            open(self.paths[0], encoding="utf-8", newline="\n") as sources,
            open(self.paths[1], encoding="utf-8", newline="\n") as targets,
        ):
            while block := list(itertools.islice(sources, BLOCK_PAIRS)):
                yield (
                    [line[:-1] for line in block],
                    [
                        line[:-1]
                        for line in itertools.islice(targets, len(block))
                    ],
                )
