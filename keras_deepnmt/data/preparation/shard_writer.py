"""Writes pairs of ids as ArrayRecord shards with an index of lengths."""

import os
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from array_record.python.array_record_module import (
    ArrayRecordReader,
    ArrayRecordWriter,
)

from keras_deepnmt.data.pair_store import lengths_path, shard_files
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256

# Records have 50 to 500 bytes: compressing each one saves nothing, and to read
# one row of a larger group the whole group would be decoded.
_WRITER_OPTIONS = "group_size:1,uncompressed"
# The index stores len + 1 (one special id) as uint16.
MAX_PAIR_LENGTH = 65_534


class ShardWriter:
    """Writes pairs to ArrayRecord shards that appear only when complete.

    Shards are written under hidden temporary names and get their final names in
    `close`; `SPLIT.lengths.npy` is renamed last and completes the set, so
    `PairStore` never opens what a killed writer left. As a context manager it
    closes on success and removes its files on an error.

    Args:
        directory: Existing folder to write to.
        split: Name of the split, for instance `"train"`.
        records_per_shard: Number of pairs per shard.

    Raises:
        ValueError: if `records_per_shard` is not positive.

    Example:
    >>> with ShardWriter(".", "train") as writer:
    ...     writer.write([5, 6], [7, 8, 9])
    >>> writer.summary["pairs"]
    1
    """

    def __init__(
        self,
        directory: str | Path,
        split: str,
        records_per_shard: int = 65_536,
    ):
        if records_per_shard < 1:
            raise ValueError(
                "`records_per_shard` must be positive. "
                f"Received: records_per_shard={records_per_shard}"
            )
        self.directory = Path(directory)
        self.split = split
        self.records_per_shard = records_per_shard
        self.summary: dict | None = None
        self._lengths = array("H")  # 4 bytes per pair
        self._shards: list[dict] = []
        self._tokens = [0, 0]
        self._writer = None
        self._records = 0
        self._remove(self._unfinished_files())

    def write(self, source_ids: Sequence[int], target_ids: Sequence[int]):
        """Appends one pair.

        Args:
            source_ids: Ids of the source without special ids.
            target_ids: Ids of the target without special ids.

        Raises:
            UserError: if a side has more ids than the index can store, or if
                the disk is full.
            ValueError: if an id is negative.
        """
        record = _encode(source_ids, target_ids)
        try:
            if self._writer is None:
                path = str(self._unfinished(len(self._shards)))
                self._writer = ArrayRecordWriter(path, _WRITER_OPTIONS)
            self._writer.write(record)
        except RuntimeError as error:
            raise self._disk_error(error) from error
        self._records += 1
        for side, ids in enumerate((source_ids, target_ids)):
            self._lengths.append(len(ids) + 1)
            self._tokens[side] += len(ids)
        if self._records == self.records_per_shard:
            self._finish_shard()

    def close(self) -> dict:
        """Verifies the shards and gives them their final names.

        Returns:
            `{"pairs", "source_tokens", "target_tokens", "shards"}`, where
            `shards` is a list of `{"file", "records", "sha256"}`. The token
            counts do not include special ids.

        Raises:
            UserError: if a shard does not have the records written to it.
        """
        if self.summary is not None:
            return self.summary
        if self._writer is not None:
            self._finish_shard()
        lengths_file = lengths_path(self.directory, self.split)
        unfinished = lengths_file.with_name(f".{lengths_file.name}.unfinished")
        try:
            with open(unfinished, "wb") as file:
                np.save(
                    file, np.frombuffer(self._lengths, "uint16").reshape(-1, 2)
                )
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._disk_error(error) from error
        # The index of an older set of this split is removed first, so that an
        # index never lies beside the shards of another set.
        lengths_file.unlink(missing_ok=True)
        self._remove(shard_files(self.directory, self.split))
        for number, shard in enumerate(self._shards):
            shard["file"] = (
                f"{self.split}-{number:05d}-of-{len(self._shards):05d}"
                ".array_record"
            )
            os.replace(self._unfinished(number), self.directory / shard["file"])
        os.replace(unfinished, lengths_file)
        self.summary = {
            "pairs": len(self._lengths) // 2,
            "source_tokens": self._tokens[0],
            "target_tokens": self._tokens[1],
            "shards": self._shards,
        }
        return self.summary

    def abort(self):
        """Removes all files of this writer."""
        if self._writer is not None:
            try:
                self._writer.close()
            except RuntimeError:  # a full disk; the file is removed anyway
                pass
            self._writer = None
        self._remove(self._unfinished_files())

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, error_type, error, traceback):
        try:
            if error_type is None:
                self.close()
        finally:
            if self.summary is None:
                self.abort()

    def _finish_shard(self):
        path = self._unfinished(len(self._shards))
        try:
            self._writer.close()
            reader = ArrayRecordReader(str(path))
            records = reader.num_records()
            reader.close()
        except RuntimeError as error:
            raise self._disk_error(error) from error
        if records != self._records:
            raise self._disk_error(f"{records} of {self._records} pairs")
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        sha256 = file_sha256(path)
        self._shards.append({"file": "", "records": records, "sha256": sha256})
        self._writer = None
        self._records = 0

    def _unfinished(self, number: int) -> Path:
        return self.directory / f".{self.split}-{number:05d}.unfinished"

    def _unfinished_files(self) -> list[Path]:
        return [
            *self.directory.glob(f".{self.split}-*.unfinished"),
            *self.directory.glob(f".{self.split}.lengths.npy.unfinished"),
        ]

    def _remove(self, files: list[Path]):
        for file in files:
            file.unlink(missing_ok=True)

    def _disk_error(self, reason) -> UserError:
        return UserError(
            f"{self.directory}: a shard of `{self.split}` could not be "
            f"written ({reason}). Free some disk space and run again."
        )


def _encode(source_ids: Sequence[int], target_ids: Sequence[int]) -> bytes:
    sides = len(source_ids), len(target_ids)
    if max(sides) > MAX_PAIR_LENGTH:
        raise UserError(
            f"A side of a pair must have at most {MAX_PAIR_LENGTH} ids. "
            f"Received: {sides[0]} and {sides[1]}. Lower the length limit."
        )
    ids = np.concatenate([source_ids, target_ids]).astype("int64")
    if len(ids) and not 0 <= ids.min() <= ids.max() < 2**31:
        raise ValueError(
            "Ids must be from 0 to 2**31 - 1. "
            f"Received: {ids.min()}..{ids.max()}"
        )
    width = 2 if not len(ids) or ids.max() < 2**16 else 4
    return np.array(sides, "<u2").tobytes() + ids.astype(f"<u{width}").tobytes()
