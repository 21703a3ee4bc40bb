"""Shortlists: the target tokens that some source tokens may need."""

import itertools
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_deepnmt.data.lexical_table import (
    EMPTY_ID,
    LexicalTable,
    learn_lexical_table,
)
from keras_deepnmt.data.word_links import MAX_LINKS
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file
from keras_deepnmt.limits import limits
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

# The name in prepared folders, run folders and preset folders.
SHORTLIST_FILE = "shortlist.npz"
_FORMAT = 1
_SPECIAL_IDS = [PADDING_ID, UNKNOWN_ID, BEGIN_ID, END_ID]
_BLOCK_PAIRS = 1024
# What NumPy raises about a file that is cut, changed or no .npz.
_DAMAGES = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, eq=False)
class Shortlists:
    """Target tokens that the translations of source tokens may need.

    A model that translates some sentences may leave out all other tokens of the
    target vocabulary. The shortlist of the sentences consists of the special
    tokens, of the tokens that are frequent in all translations, and of the most
    probable translations of each source token (Jean et al., 2015).

    Attributes:
        by_source: Int32 array `(source vocabulary size, n)`: the most probable
            target ids of each source id, most probable first, filled up with
            the padding id 0.
        frequent: Int32 array `(m,)`: the most frequent target ids, most
            frequent first.
        target_vocabulary_size: Number of ids of the target vocabulary.

    Raises:
        ValueError: if an array has another shape or type, or a target id is
            outside the vocabulary.

    Example:
    >>> pairs = [([4, 5], [6, 7]), ([4], [6])]
    >>> shortlists = Shortlists.learn(pairs, 6, 9, num_targets=1)
    >>> shortlists.by_source[4:].tolist()
    [[6], [7]]
    """

    by_source: np.ndarray
    frequent: np.ndarray
    target_vocabulary_size: int

    def __post_init__(self):
        for name, dimensions in (("by_source", 2), ("frequent", 1)):
            ids = getattr(self, name)
            if ids.ndim != dimensions or ids.dtype != np.int32:
                raise ValueError(
                    f"`{name}` must be an int32 array of {dimensions} "
                    f"dimensions. Received: {ids.dtype}, shape {ids.shape}"
                )
            _check_ids(name, ids, self.target_vocabulary_size)
        if self.target_vocabulary_size < len(_SPECIAL_IDS):
            raise ValueError(
                "`target_vocabulary_size` must count the "
                f"{len(_SPECIAL_IDS)} special ids. Received: "
                f"target_vocabulary_size={self.target_vocabulary_size}"
            )

    @classmethod
    def learn(
        cls,
        pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        *,
        num_targets: int = 50,
        num_frequent: int = 100,
        max_links: int = MAX_LINKS,
    ) -> "Shortlists":
        """Learns the translations of tokens from parallel text.

        The probabilities are those of `learn_lexical_table`, IBM Model 1, on
        the first pairs: those before the one with which the number of word
        links, `(len(source) + 1) * len(target)` of a pair, exceeds
        `max_links`. A pair that alone has more links is left out. This bounds
        the memory, at about 80 bytes per link. Source ids that do not occur in
        these pairs have no entry. The frequent tokens are counted in all pairs.

        Args:
            pairs: Ids of each source and target sentence, without special ids.
                They are read once, as a stream.
            source_vocabulary_size: Number of ids of the source vocabulary.
            target_vocabulary_size: Number of ids of the target vocabulary.
            num_targets: Maximum number of target ids of a source id. Those of
                equal probability are ordered by id.
            num_frequent: Maximum number of frequent target ids.
            max_links: Maximum number of word links to learn from.

        Returns:
            The shortlists.

        Raises:
            ValueError: if a number is out of range, an id is outside its
                vocabulary, or no pair has a target token and at most
                `max_links` links.

        Example:
        >>> pairs = [([4, 5], [6, 7, 8]), ([4], [6, 8])]
        >>> Shortlists.learn(pairs, 6, 9, num_frequent=2).frequent.tolist()
        [6, 8]
        """
        for name, value, least in (
            ("num_targets", num_targets, 1),
            ("num_frequent", num_frequent, 0),
            ("max_links", max_links, 1),
        ):
            if value < least:
                raise ValueError(
                    f"`{name}` must be at least {least}. "
                    f"Received: {name}={value}"
                )
        counts = np.zeros(target_vocabulary_size, "int64")
        first, num_links = [], 0
        for block in _blocks(pairs):
            sources, targets = (
                np.concatenate([np.asarray(ids, "int64") for ids in side])
                for side in zip(*block, strict=True)
            )
            _check_ids("source", sources, source_vocabulary_size)
            _check_ids("target", targets, target_vocabulary_size)
            counts += np.bincount(targets, minlength=target_vocabulary_size)
            for source, target in block:
                links = (len(source) + 1) * len(target)
                if 0 < links <= max_links:
                    num_links += links
                    if num_links <= max_links:
                        first.append((source, target))
        if not first:
            raise ValueError(
                "`pairs` must hold one with a target token and at most "
                f"`max_links` word links. Received: max_links={max_links} and "
                "no such pair."
            )
        table = learn_lexical_table(first)
        num_targets = min(num_targets, target_vocabulary_size)
        by_source = np.zeros((source_vocabulary_size, num_targets), "int32")
        _fill(by_source, table)
        frequent = np.argsort(-counts, kind="stable")[:num_frequent]
        frequent = frequent[counts[frequent] > 0].astype("int32")
        return cls(by_source, frequent, target_vocabulary_size)

    def candidates(self, rows: Iterable[Sequence[int]]) -> np.ndarray:
        """Returns the target ids that translations of some sentences may need.

        Args:
            rows: Source ids of each sentence; special ids may be among them.

        Returns:
            Sorted int32 array of the special ids, the frequent ids and the most
            probable targets of all source ids, without repetitions.

        Raises:
            ValueError: if an id is outside the source vocabulary.

        Example:
        >>> shortlists = Shortlists.learn([([4, 5], [6, 7]), ([4], [6])], 6, 9)
        >>> shortlists.candidates([[4, 3], [5, 3]]).tolist()
        [0, 1, 2, 3, 6, 7]
        """
        source_ids = np.zeros(len(self.by_source), bool)
        for row in rows:
            ids = np.asarray(row, "int64")
            _check_ids("rows", ids, len(source_ids))
            source_ids[ids] = True
        needed = np.zeros(self.target_vocabulary_size, bool)
        needed[_SPECIAL_IDS] = True
        needed[self.frequent] = True
        needed[self.by_source[source_ids]] = True
        return np.flatnonzero(needed).astype("int32")

    def save(self, file: str | Path) -> None:
        """Writes a `.npz` file, which appears only when it is complete.

        Equal shortlists give equal bytes.

        Args:
            file: The file to write.

        Example:
        >>> Shortlists.learn([([4], [5])], 6, 7).save("shortlist.npz")
        >>> Path("shortlist.npz").is_file()
        True
        """
        with atomic_file(file) as temporary, open(temporary, "wb") as stream:
            # NumPy dates all members 1980, and does not compress: the bytes
            # depend on neither the time nor the version of zlib.
            np.savez(
                stream,
                format=_FORMAT,
                by_source=self.by_source,
                frequent=self.frequent,
                target_vocabulary_size=self.target_vocabulary_size,
            )

    @classmethod
    def load(cls, file: str | Path) -> "Shortlists":
        """Reads a file that `save` wrote.

        Args:
            file: The file.

        Returns:
            The shortlists.

        Raises:
            UserError: if the file is missing, damaged or of another version, or
                unpacks to more than `Limits` allow.

        Example:
        >>> Shortlists.learn([([4], [5])], 6, 7).save("shortlist.npz")
        >>> Shortlists.load("shortlist.npz").frequent.tolist()
        [5]
        """
        remedy = (
            "Write it by `deepnmt prepare` with `--shortlist-targets 50`; a "
            "run has a copy of that in its prepared folder."
        )
        try:
            with zipfile.ZipFile(file) as members:
                sizes = [member.file_size for member in members.infolist()]
            packed = Path(file).stat().st_size
            limits().check_unpacked(sum(sizes), packed, file)
            with open(file, "rb") as stream, np.load(stream) as arrays:
                version = int(arrays["format"])
                if version != _FORMAT:
                    raise UserError(
                        f"{file}: the format must be {_FORMAT}. Received: "
                        f"{version}, of another version. {remedy}"
                    )
                return cls(
                    arrays["by_source"],
                    arrays["frequent"],
                    int(arrays["target_vocabulary_size"]),
                )
        except UserError:
            raise
        except OSError as error:
            raise UserError(
                f"{file}: cannot be read ({error.strerror}). {remedy}"
            ) from error
        except _DAMAGES as error:
            raise UserError(
                f"{file}: damaged, or no shortlists ({error}). {remedy}"
            ) from error


def _blocks(pairs) -> Iterator[list]:
    pairs = iter(pairs)
    while block := list(itertools.islice(pairs, _BLOCK_PAIRS)):
        yield block


def _check_ids(name: str, ids: np.ndarray, size: int):
    if ids.size and not 0 <= ids.min() <= ids.max() < size:
        raise ValueError(
            f"Ids of `{name}` must be from 0 to {size - 1}. "
            f"Received: {ids.min()}..{ids.max()}"
        )


def _fill(by_source: np.ndarray, table: LexicalTable):
    """Writes the most probable targets of each source id into its row."""
    real = table.source_ids != EMPTY_ID
    source_ids, target_ids = table.source_ids[real], table.target_ids[real]
    order = np.lexsort((target_ids, -table.probabilities[real], source_ids))
    source_ids, target_ids = source_ids[order], target_ids[order]
    # The place of each entry among those of its source id.
    starts = np.searchsorted(source_ids, source_ids)
    ranks = np.arange(len(source_ids)) - starts
    best = ranks < by_source.shape[1]
    by_source[source_ids[best], ranks[best]] = target_ids[best]
