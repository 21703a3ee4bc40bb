"""Reads the pairs of a corpus, whatever its files are."""

import hashlib
from collections import Counter
from collections.abc import Iterator

from keras_deepnmt.data.bilingual_files.document import open_bilingual
from keras_deepnmt.data.corpora import CorpusFiles, LineReader, aligned_lines


class PairLines:
    """Iterates over the number of a line, and its two sides as bytes.

    The corpus is two text files, or one file with both sides. During iteration,
    `position`, in bytes of the files, and `sha256`, the hash of each side as if
    it was a text file, cover what has been read so far. At its end, `skipped`
    says why entries of one file have no pair, and how many. A damaged file
    raises a `UserError`, and so do two files with different numbers of lines.
    """

    def __init__(self, corpus: CorpusFiles):
        self.skipped: Counter = Counter()
        self._asked = corpus.asked
        self._order = -1 if corpus.is_reversed else 1
        if corpus.asked is None:
            self._files = [LineReader(corpus.source), LineReader(corpus.target)]
        else:
            self._files = [LineReader(corpus.source)]
        self._hashes = hashlib.sha256(), hashlib.sha256()

    @property
    def position(self) -> int:
        return sum(file.position for file in self._files)

    @property
    def sha256(self) -> dict[str, str]:
        hashes = [file.sha256 for file in self._files]
        if self._asked is not None:
            hashes = [digest.hexdigest() for digest in self._hashes]
        return dict(zip(("source", "target"), hashes, strict=True))

    def __iter__(self) -> Iterator[tuple[int, bytes, bytes]]:
        if self._asked is None:
            pairs = aligned_lines(*self._files)
            for line, (source, target) in enumerate(pairs, start=1):
                yield line, source, target
            return
        reader = open_bilingual(self._files[0], self._asked)
        for line, *texts in reader.pairs():
            sides = [text.encode() for text in texts[:: self._order]]
            for side, digest in zip(sides, self._hashes, strict=True):
                digest.update(side + b"\n")
            yield line, *sides
        self.skipped = reader.left


def content_sha256(corpus: CorpusFiles) -> dict[str, str]:
    """Returns the hashes of both sides of a corpus, which is read."""
    if corpus.asked is not None:
        pairs = PairLines(corpus)
        for _ in pairs:
            pass
        return pairs.sha256
    # Not as pairs, which may be too few on one side.
    hashes = {}
    for side in ("source", "target"):
        file = LineReader(getattr(corpus, side))
        for _ in file:
            pass
        hashes[side] = file.sha256
    return hashes
