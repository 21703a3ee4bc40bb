"""The sizes of our models, and batches of rows of ids, for all engines."""

import json
import os

import numpy as np

PADDING_ID, UNKNOWN_ID, BEGIN_ID, END_ID = range(4)
NUM_CORES = len(os.sched_getaffinity(0))


def read_sizes(folder):
    """Reads the sizes of the model."""
    return json.loads((folder / "model.json").read_text())


def batches(case):
    """Splits the sources of a case into batches, in their order."""
    sources, size = case["sources"], case["batch_size"]
    for start in range(0, len(sources), size):
        yield sources[start : start + size]


def padded(rows, padding_id=PADDING_ID):
    """Puts rows of ids into an array."""
    array = np.full((len(rows), max(map(len, rows))), padding_id, "int64")
    for row, ids in zip(array, rows, strict=True):
        row[: len(ids)] = ids
    return array


def without_end(row):
    """Cuts a row of ids before its end or padding id."""
    ends = np.flatnonzero(np.isin(row, [END_ID, PADDING_ID]))
    return list(map(int, row[: ends[0]] if len(ends) else row))
