"""Normalised pairs on disk, between the two passes of `prepare`."""

import itertools
from collections.abc import Iterator
from pathlib import Path

# A block per core is in memory at a time, as text and as ids.
BLOCK_PAIRS = 1024


class Spool:
    """Normalised pairs on disk, between the two passes.

    Args:
        folder: Where its two files go.
        split: Name of the split.
    """

    def __init__(self, folder: Path, split: str):
        self.paths = folder / f"{split}.source", folder / f"{split}.target"
        self.pairs = 0
        self._files = None

    def __enter__(self) -> "Spool":
        self._files = [
            open(path, "w", encoding="utf-8", newline="\n")
            for path in self.paths
        ]
        return self

    def __exit__(self, *error):
        for file in self._files:
            file.close()

    def write(self, pairs: list[tuple[str, str]]):
        """Appends pairs."""
        for file, side in zip(
            self._files, zip(*pairs, strict=True), strict=True
        ):
            file.write("\n".join(side) + "\n")
        self.pairs += len(pairs)

    def blocks(self) -> Iterator[tuple[list[str], list[str]]]:
        """Iterates over `(sources, targets)`, some thousand pairs at a time."""
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
