"""Word alignments that come with training corpora, in Pharaoh's format.

A line has the links of a pair, such as `0-0 1-2`: a word of the source, a
hyphen, and a word of the target, both counted from 0.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from keras_deepnmt.data.corpora import CorpusFiles, LineReader, decode_line
from keras_deepnmt.data.preparation.spool import Spool
from keras_deepnmt.errors import UserError

# No sentence has words of greater numbers.
_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_POSSIBLE = re.compile(r"[0-9]+[p?][0-9]+")

Links = list[tuple[int, int]]


def parse_links(line: str, place: str) -> Links:
    """Reads the links of a line such as `0-0 1-2`; an empty one has no links.

    `place` is what errors begin with: the file and the line.
    """
    links = []
    for part in line.split():
        link = _LINK.fullmatch(part)
        if link is None:
            hint = ""
            if _POSSIBLE.fullmatch(part):
                hint = " Possible links have no place here: leave them out."
            raise UserError(
                f"{place}: a link must be the numbers of a source word and a "
                "target word, from 0, with a hyphen between them, such as 3-4. "
                f"Received: {part[:40]!r}.{hint}"
            )
        links.append((int(link[1]), int(link[2])))
    return links


def spool_alignments(
    spool: Spool,
    corpora: Sequence[CorpusFiles],
    lines: Sequence[int],
    path: Path,
) -> dict[int, str]:
    """Writes a line of links for each pair of a spool, and checks them all.

    `corpora` are those that the spool's origins number, with as many lines as
    `lines` says. A pair of a corpus without alignments gets an empty line.
    Returns the SHA-256 of the alignments of each corpus that has some, by its
    number.
    """
    files = {
        number: _AlignmentFile(corpus, count)
        for number, (corpus, count) in enumerate(
            zip(corpora, lines, strict=True)
        )
        if corpus.alignments is not None
    }
    row = 0
    with open(path, "w", encoding="utf-8", newline="\n") as output:
        for block in spool.blocks():
            origins = spool.origins(np.arange(row, row + len(block[0])))
            row += len(origins)
            for (number, line), *texts in zip(
                origins.tolist(), *block, strict=True
            ):
                links: Links = []
                if number in files:
                    links = files[number].links(line, texts)
                output.write(" ".join(f"{a}-{b}" for a, b in links) + "\n")
    return {number: file.finish() for number, file in files.items()}


def read_spooled(path: Path) -> Iterator[Links]:
    """Iterates over the links of each pair of the spool."""
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            yield [tuple(map(int, part.split("-"))) for part in line.split()]


class _AlignmentFile:
    """Reads the alignments of a corpus, once and in order.

    `lines` is the number that there must be.
    """

    def __init__(self, corpus: CorpusFiles, lines: int):
        self._corpus = corpus
        self._expected = lines
        self._reader = LineReader(corpus.alignments)
        self._lines = iter(self._reader)

    def links(self, line: int, texts: Sequence[str]) -> Links:
        """Returns the links of a line that is behind those asked for before."""
        found: Links | None = None
        while self._reader.lines < line:
            found = self._next()
            if found is None:
                self.finish()
        # Of a pair that stands in the files the other way round.
        if self._corpus.is_reversed:
            found = [link[::-1] for link in found]
        counts = [len(text.split()) for text in texts]
        for link in found:
            for side, word, count in zip(
                ("source", "target"), link, counts, strict=True
            ):
                if word >= count:
                    self.finish()  # which says if lines are missing
                    raise UserError(
                        f"{self._place(line)}: a link must name a word of the "
                        f"{side} sentence, which has {count}, counted from 0. "
                        f"Received: word {word} in {self._given(link)}."
                    )
        return found

    def finish(self) -> str:
        """Reads the rest, checks it and returns the SHA-256 of the file."""
        while self._next() is not None:
            pass
        if self._reader.lines != self._expected:
            corpus = self._corpus
            raise UserError(
                f"{self._reader.path}: must have a line for each of the "
                f"{self._expected} lines of {corpus.source} and "
                f"{corpus.target}. Received: {self._reader.lines} lines."
            )
        return self._reader.sha256

    def _next(self) -> Links | None:
        line = next(self._lines, None)
        if line is None:
            return None
        number = self._reader.lines
        text = decode_line(line, self._reader.path, number)
        return parse_links(text, self._place(number))

    def _place(self, line):
        return f"{self._reader.path}, line {line}"

    def _given(self, link):
        first, second = link[::-1] if self._corpus.is_reversed else link
        return f"{first}-{second}"
