"""Reads pairs of id sequences from ArrayRecord shards.

A record is two little-endian uint16 numbers, the number of source ids and of
target ids, followed by the ids of both: uint16, or uint32 if an id needs it.
"""

import itertools
import re
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_deepnmt.data.open_shards import OpenShards
from keras_deepnmt.errors import UserError

_OPEN_SHARDS = OpenShards()
_STORE_NUMBERS = itertools.count()


class PairStore:
    """Gives random access to the pairs of one split.

    A split may have more shards than a process may have open files: shards are
    opened when they are read, and those read last stay open. Opening one again
    takes about a millisecond, so `ulimit -n` should allow for all shards of a
    large corpus. Several threads may read at once; a pickled store opens its
    own shards in the process that receives it.

    Args:
        directory: Folder a `ShardWriter` wrote to.
        split: Name of the split.
        source_vocabulary_size: Larger source ids raise an error. Defaults to
            no limit.
        target_vocabulary_size: Larger target ids raise an error. Defaults to
            no limit.

    Raises:
        UserError: if the set of shards is missing, incomplete or damaged, or
            if a shard cannot be opened.

    Example:
    >>> from keras_deepnmt.data import ShardWriter
    >>> with ShardWriter(".", "train") as writer:
    ...     writer.write([5, 6], [7, 8, 9])
    >>> source_ids, target_ids = PairStore(".", "train").read([0])[0]
    >>> target_ids.tolist()
    [7, 8, 9]
    """

    def __init__(
        self,
        directory: str | Path,
        split: str,
        source_vocabulary_size: int | None = None,
        target_vocabulary_size: int | None = None,
    ):
        self.directory = Path(directory)
        self.split = split
        self._vocabulary_sizes = (
            source_vocabulary_size,
            target_vocabulary_size,
        )
        lengths_file = lengths_path(self.directory, split)
        self._files = shard_files(self.directory, split)
        if not lengths_file.is_file() or not _is_complete(self._files):
            raise UserError(
                f"{self.directory} holds no complete set of `{split}` shards. "
                "Run `deepnmt prepare` again."
            )
        self.lengths = _read_lengths(lengths_file)
        self._number = next(_STORE_NUMBERS)
        weakref.finalize(self, _OPEN_SHARDS.forget, self._number)
        records = [
            self._reader(shard).num_records()
            for shard in range(len(self._files))
        ]
        self._starts = np.concatenate([[0], np.cumsum(records)]).astype("int64")
        if self._starts[-1] != len(self.lengths):
            raise UserError(
                f"{lengths_file} lists {len(self.lengths)} pairs, but the "
                f"shards beside it hold {self._starts[-1]}. "
                "Run `deepnmt prepare` again."
            )

    def __len__(self) -> int:
        return len(self.lengths)

    def __reduce__(self):  # the shards are opened again
        arguments = (self.directory, self.split, *self._vocabulary_sizes)
        return PairStore, arguments

    def read(self, rows: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Reads the pairs of several rows at once.

        Args:
            rows: Row numbers in any order.

        Returns:
            A list with `(source_ids, target_ids)` of each row, int32, without
            special ids.

        Raises:
            IndexError: if a row number is out of range.
            UserError: if a record is damaged or an id is outside a vocabulary.
        """
        rows = np.asarray(rows, "int64").reshape(-1)
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(
                f"`rows` must lie in 0..{len(self) - 1}. "
                f"Received: {rows.min()}..{rows.max()}"
            )
        pairs = [None] * len(rows)
        shards = np.searchsorted(self._starts, rows, side="right") - 1
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            positions = (rows[places] - self._starts[shard]).tolist()
            pairs_read = self._read_shard(self._files[shard], shard, positions)
            for place, pair in zip(places.tolist(), pairs_read, strict=True):
                pairs[place] = pair
        return pairs

    def _reader(self, shard: int):
        return _OPEN_SHARDS.get(self._number, shard, self._files[shard])

    def _read_shard(self, file: Path, shard: int, positions: list[int]):
        reader = self._reader(int(shard))
        try:
            records = reader.read(positions)
        except RuntimeError as error:
            raise UserError(
                f"{file}: damaged ({error}). Run `deepnmt prepare` again."
            ) from error
        for position, record in zip(positions, records, strict=True):
            try:
                yield self._decode(record)
            except UserError as error:
                raise UserError(f"{file}, record {position}: {error}") from None

    def _decode(self, record: bytes) -> tuple[np.ndarray, np.ndarray]:
        if len(record) < 4 or len(record) % 2:
            raise UserError("damaged. Run `deepnmt prepare` again.")
        numbers = np.frombuffer(record, "<u2")
        source_length, count = (
            int(numbers[0]),
            int(numbers[0]) + int(numbers[1]),
        )
        ids = numbers[2:]
        if len(ids) == 2 * count:
            ids = ids.view("<u4")
        if len(ids) != count:
            raise UserError("damaged. Run `deepnmt prepare` again.")
        ids = ids.astype("int32")
        pair = ids[:source_length], ids[source_length:]
        for side, ids, size in zip(
            ("source", "target"), pair, self._vocabulary_sizes, strict=True
        ):
            if size is not None and len(ids) and ids.max() >= size:
                raise UserError(
                    f"{side} id {ids.max()} is outside the vocabulary "
                    f"of {size}. The shards belong to another tokenizer."
                )
        return pair


def _read_lengths(file):
    try:
        lengths = np.load(file, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise UserError(
            f"{file}: damaged ({str(error).splitlines()[0]}). Run `deepnmt "
            "prepare` again."
        ) from error
    if lengths.dtype != "uint16" or lengths.shape != (len(lengths), 2):
        raise UserError(
            f"{file}: must hold two uint16 numbers a pair. Received: "
            f"{lengths.dtype} {lengths.shape}. Run `deepnmt prepare` again."
        )
    return lengths


def lengths_path(directory: Path, split: str) -> Path:
    """Returns the path of the file with the lengths of a split's pairs."""
    return directory / f"{split}.lengths.npy"


def shard_files(directory: Path, split: str) -> list[Path]:
    """Lists the existing shards of a split, in the order of their rows."""
    pattern = re.compile(rf"{re.escape(split)}-\d{{5}}-of-\d{{5}}.array_record")
    return sorted(p for p in directory.glob("*") if pattern.fullmatch(p.name))


def _is_complete(files: list[Path]) -> bool:
    total = f"-of-{len(files):05d}.array_record"
    return all(file.name.endswith(total) for file in files)
