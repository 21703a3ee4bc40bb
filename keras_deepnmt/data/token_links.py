"""The word alignments of training pairs, as links between their tokens.

`LINKS_FILE` has all links, one after another: two little-endian uint16 numbers
each, the positions of the target token and of the source token. `ENDS_FILE` has
the number of links up to the end of each pair.
"""

import os
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError

LINKS_FILE = "train.links"
ENDS_FILE = "train.link_ends.npy"


def token_links(
    tokenizers: tuple[Tokenizer, Tokenizer],
    texts: tuple[str, str],
    links: Iterable[tuple[int, int]],
    starts: tuple[int, int] = (0, 0),
) -> np.ndarray:
    """Returns which tokens of a pair are linked if these words are.

    Each token of a source word is linked with each token of the target word.
    `links` are pairs of a source and a target word between white space,
    numbered from 0. `starts` is the number of characters of a tag at the
    beginning of either text, which is no word. Returns a uint16 array
    `(links, 2)`: target token and source token, in order.
    """
    sides: list[dict[int, list[int]]] = []
    for tokenizer, text, begin in zip(tokenizers, texts, starts, strict=True):
        tokens: dict[int, list[int]] = {}
        words = tokenizer.token_words(text, begin, by_space=True)
        for place, numbers in enumerate(words):
            for number in numbers:
                tokens.setdefault(number, []).append(place)
        sides.append(tokens)
    found = {
        (target, source)
        for words in links
        for target in sides[1].get(words[1], ())
        for source in sides[0].get(words[0], ())
    }
    return np.array(sorted(found), "uint16").reshape(-1, 2)


class LinkWriter:
    """Writes the links of pairs in order.

    The folder must exist. `pairs` is the number of pairs that have a link.
    """

    def __init__(self, directory: str | Path):
        self._directory = Path(directory)
        self._file = None
        self._ends = array("q")
        self.pairs = 0

    def write(self, links: np.ndarray):
        """Appends the links of a pair, as `token_links` returns them."""
        self._file.write(links.astype("<u2").tobytes())
        before = self._ends[-1] if self._ends else 0
        self._ends.append(before + len(links))
        self.pairs += len(links) > 0

    def __enter__(self) -> "LinkWriter":
        self._file = open(self._directory / LINKS_FILE, "wb")
        return self

    def __exit__(self, error_type, error, traceback):
        with self._file as file:
            if error_type is not None:
                return
            file.flush()
            os.fsync(file.fileno())
        np.save(self._directory / ENDS_FILE, np.frombuffer(self._ends, "int64"))


class LinkStore:
    """Gives random access to the links of the training pairs.

    Several threads may read at once. A `LinkWriter` wrote to the folder. Files
    that are damaged or of another number of `pairs` are refused.
    """

    def __init__(self, directory: str | Path, pairs: int):
        directory = Path(directory)
        file = directory / LINKS_FILE
        try:
            self._ends = np.load(directory / ENDS_FILE, mmap_mode="r")
            size = file.stat().st_size
        except (OSError, ValueError, EOFError) as error:
            raise UserError(
                f"{directory}: its alignments cannot be read "
                f"({str(error).splitlines()[0]}). Run `deepnmt prepare` again."
            ) from error
        links = int(self._ends[-1]) if len(self._ends) else 0
        if len(self._ends) != pairs or 4 * links != size:
            raise UserError(
                f"{file}: must have the alignments of {pairs} pairs. Received: "
                f"{len(self._ends)} pairs with {links} links in {size} bytes. "
                "Run `deepnmt prepare` again."
            )
        # An empty file cannot be mapped.
        self._links = np.memmap(file, "<u2", "r") if size else np.zeros(0, "u2")

    def read(self, rows: Sequence[int]) -> list[np.ndarray]:
        """Reads the links of several rows, which may be in any order."""
        found = []
        for row in rows:
            start = self._ends[row - 1] if row else 0
            part = self._links[2 * int(start) : 2 * int(self._ends[row])]
            found.append(np.array(part).reshape(-1, 2))
        return found

    def linked_rows(self) -> np.ndarray:
        """Returns the rows of the pairs that have a link."""
        return np.flatnonzero(np.diff(self._ends, prepend=0))
