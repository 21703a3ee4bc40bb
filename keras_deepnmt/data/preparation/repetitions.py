"""Finds pairs that occur again, one partition of their hashes at a time.

The hashes of all pairs are on disk. A partition has those with the same first
bits, so equal ones are together, and nothing else is needed to say which of
them are repetitions. Each partition may be searched by another worker.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from keras_deepnmt.data.preparation.block_maps import BlockMap, map_here

_HASHED_ROW = np.dtype([("hash", "<u8"), ("row", "<u8")])
# Sorted and written together.
_ROWS_AT_ONCE = 2**20
# A partition has about so many rows, if the number of bits allows it.
_PARTITION_ROWS = 2**18
_LEAST_BITS = 4  # a small corpus has work for several workers, too
_MOST_BITS = 12


class Repetitions:
    """Says which rows have the hash of another one that is preferred to them.

    Of equal ones, that with the largest weight is preferred, and among those
    the first. As a context manager it frees the disk that it used. The file of
    hashes is in `folder`, but has no name there. `map_blocks` calls
    `RepeatedRows`.
    """

    def __init__(self, folder: str | Path, map_blocks: BlockMap = map_here):
        self._map_blocks = map_blocks
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._waiting: list[np.ndarray] = []
        self._num_waiting = self._num_rows = 0
        # For each part of the file, where each hash prefix of it begins.
        self._begins: list[np.ndarray] = []
        # The rows from a start on have a weight.
        self._starts: list[int] = []
        self._weights: list[float] = []
        self._repeated = np.zeros(0, bool)

    def __enter__(self) -> "Repetitions":
        return self

    def __exit__(self, *error):
        self._file.close()

    def add(self, hashes: np.ndarray, weight: float) -> None:
        """Adds the uint64 hashes of the next rows."""
        if not self._weights or weight != self._weights[-1]:
            self._starts.append(self._num_rows)
            self._weights.append(weight)
        rows = np.empty(len(hashes), _HASHED_ROW)
        rows["hash"] = hashes
        rows["row"] = np.arange(self._num_rows, self._num_rows + len(hashes))
        self._num_rows += len(rows)
        self._waiting.append(rows)
        self._num_waiting += len(rows)
        if self._num_waiting >= _ROWS_AT_ONCE:
            self._write()

    def find(self, progress: Callable[[float], None] = lambda share: None):
        """Finds the repetitions of all rows that were added.

        `progress` is called with the share that was done since its last call.
        """
        self._write()
        self._repeated = np.zeros(self._num_rows, bool)
        made_of = self._starts, self._weights
        number = 2 ** self._num_bits()
        calls = map(self._partition, range(number))
        for rows in self._map_blocks(RepeatedRows, made_of, calls):
            self._repeated[rows] = True
            progress(1 / number)

    def are_repeated(self, start: int, stop: int) -> np.ndarray:
        """Returns for each of successive rows whether it is a repetition."""
        return self._repeated[start:stop]

    def _write(self):
        rows = np.concatenate([np.zeros(0, _HASHED_ROW), *self._waiting])
        self._waiting, self._num_waiting = [], 0
        rows = rows[np.argsort(rows["hash"])]
        prefixes = np.arange(2**_MOST_BITS, dtype="uint64")
        begins = np.searchsorted(rows["hash"], prefixes << (64 - _MOST_BITS))
        self._begins.append(np.append(begins, len(rows)).astype("uint32"))
        self._file.write(rows.tobytes())

    def _num_bits(self):
        bits = math.ceil(math.log2(max(1, self._num_rows / _PARTITION_ROWS)))
        return min(max(bits, _LEAST_BITS), _MOST_BITS)

    def _partition(self, number):
        """Reads the rows whose hashes begin with the bits of a number."""
        prefixes = 2 ** (_MOST_BITS - self._num_bits())
        parts, before = [], 0
        for begins in self._begins:
            first, last = begins[[number * prefixes, (number + 1) * prefixes]]
            self._file.seek((before + int(first)) * _HASHED_ROW.itemsize)
            read = self._file.read(int(last - first) * _HASHED_ROW.itemsize)
            parts.append(np.frombuffer(read, _HASHED_ROW))
            before += int(begins[-1])
        rows = np.concatenate(parts)
        return rows["hash"].copy(), rows["row"].copy()


class RepeatedRows:
    """Finds the repetitions among rows, for `Repetitions`.

    `starts` are first rows, in their order, and `weights` those of the rows
    from each of them on.
    """

    def __init__(self, starts: Sequence[int], weights: Sequence[float]):
        self._starts = np.array(starts, "uint64")
        self._weights = np.array(weights)

    def __call__(self, hashes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Returns those of the rows that are repetitions."""
        places = np.searchsorted(self._starts, rows, "right") - 1
        order = np.lexsort((rows, -self._weights[places], hashes))
        hashes, rows = hashes[order], rows[order]
        return rows[1:][hashes[1:] == hashes[:-1]]
