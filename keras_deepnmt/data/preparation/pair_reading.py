"""The first pass of `prepare`: from text files to a spool of clean pairs."""

import itertools

import numpy as np

from keras_deepnmt.data.corpora import (
    CorpusFiles,
    LineReader,
    aligned_lines,
    decode_line,
)
from keras_deepnmt.data.preparation.held_out_sample import HeldOutDraw
from keras_deepnmt.data.preparation.spool import BLOCK_PAIRS, Spool
from keras_deepnmt.data.preparation.text_filters import (
    FILTERS,
    PairFilter,
    SeenHashes,
    normalize_text,
    text_hash,
)


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
                for file, side in zip(raw_files, (0, 1), strict=False):
                    file.writelines(pair[side] + "\n" for pair in raw)
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
