"""The first pass of `prepare`: from text files to a spool of clean pairs."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_deepnmt.data.corpora import (
    LineReader,
    aligned_lines,
    decode_line,
)
from keras_deepnmt.data.text_filters import (
    FILTERS,
    PairFilter,
    SeenHashes,
    normalize_text,
    text_hash,
)

BLOCK_PAIRS = 4096


@dataclass(frozen=True)
class CorpusFiles:
    """A corpus whose files are known.

    Args:
        name: What to call it.
        source: Path of the source side.
        target: Path of the target side.
        weight: How often its pairs are drawn per epoch.
    """

    name: str
    source: Path
    target: Path
    weight: float = 1.0


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
        for file, side in zip(self._files, zip(*pairs), strict=True):
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


class HeldOutDraw:
    """Draws some of the kept pairs evenly while their number is unknown.

    Args:
        pairs: How many to draw.
        seed: Seed of the draw.
    """

    def __init__(self, pairs: int, seed: int):
        self._random = np.random.default_rng(seed)
        self._rows = np.zeros(pairs, "int64")
        self._texts = [None] * pairs
        self._seen = 0

    def offer(self, raw_pairs: list[tuple[str, str]]):
        """Shows the next pairs, as they stand in their files."""
        size = len(self._texts)
        if not size:
            return
        rows = np.arange(self._seen, self._seen + len(raw_pairs))
        places = np.where(rows < size, rows, self._random.integers(0, rows + 1))
        for number in np.flatnonzero(places < size).tolist():
            self._rows[places[number]] = rows[number]
            self._texts[places[number]] = raw_pairs[number]
        self._seen += len(raw_pairs)

    def draw(self) -> tuple[np.ndarray, list[tuple[str, str]]]:
        """Gives the drawn rows, in a random order, and their texts."""
        count = min(self._seen, len(self._texts))
        order = self._random.permutation(count)
        return self._rows[order], [self._texts[i] for i in order.tolist()]


class PairReader:
    """Reads corpora of one split into a spool.

    Args:
        pair_filter: Rules for training text; `None` refuses empty pairs only.
        drop_duplicates: Whether only the first of equal pairs is kept.
        draw: Told of every kept pair.
        progress: Called with the number of bytes read since the last call.
    """

    def __init__(
        self,
        pair_filter: PairFilter | None,
        drop_duplicates: bool,
        draw: HeldOutDraw,
        progress=lambda bytes: None,
    ):
        self.counts = {"read": 0, **dict.fromkeys(FILTERS, 0)}
        self._filter = pair_filter
        self._seen = SeenHashes() if drop_duplicates else None
        self._draw = draw
        self._progress = progress

    def read(self, corpus: CorpusFiles, spool: Spool, raw_files=()) -> dict:
        """Reads one corpus.

        Args:
            corpus: The corpus.
            spool: Where kept pairs go, normalised.
            raw_files: Two open text files for the kept pairs as they were.

        Returns:
            Its entry for the manifest.
        """
        readers = LineReader(corpus.source), LineReader(corpus.target)
        lines = aligned_lines(*readers)
        before, number, position = spool.pairs, 1, 0
        while block := list(itertools.islice(lines, BLOCK_PAIRS)):
            raw, pairs = self._keep(block, corpus, number)
            number += len(block)
            if pairs:
                spool.write(pairs)
                self._draw.offer(raw)
                for file, side in zip(raw_files, zip(*raw), strict=False):
                    file.write("\n".join(side) + "\n")
            now = sum(reader.position for reader in readers)
            self._progress(now - position)
            position = now
        return {
            "name": corpus.name,
            "source": str(corpus.source),
            "target": str(corpus.target),
            "sha256": {
                "source": readers[0].sha256,
                "target": readers[1].sha256,
            },
            "lines": number - 1,
            "pairs": spool.pairs - before,
            "weight": corpus.weight,
        }

    def _keep(self, block, corpus: CorpusFiles, number: int):
        raw, pairs = [], []
        for offset, (source, target) in enumerate(block):
            texts = (
                decode_line(source, corpus.source, number + offset),
                decode_line(target, corpus.target, number + offset),
            )
            pair = normalize_text(texts[0]), normalize_text(texts[1])
            reason = self._reason(*pair)
            if reason is None:
                raw.append(texts)
                pairs.append(pair)
            else:
                self.counts[reason] += 1
        self.counts["read"] += len(block)
        if self._seen is None or not pairs:
            return raw, pairs
        new = self._seen.add(
            np.array([text_hash(*pair) for pair in pairs], "uint64")
        ).tolist()
        self.counts["duplicate"] += len(new) - sum(new)
        return (
            list(itertools.compress(raw, new)),
            list(itertools.compress(pairs, new)),
        )

    def _reason(self, source: str, target: str) -> str | None:
        if self._filter is not None:
            return self._filter.reason(source, target)
        return None if source and target else "empty"
