"""Temporary files of pairs, between the passes of `prepare`."""

import itertools
from collections.abc import Iterator
from pathlib import Path

# One block per core is in memory at a time, as text and as ids.
BLOCK_PAIRS = 1024


class Spool:
    """Two temporary files in `folder` with the kept pairs of a split."""

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
