"""The mean of several weights files, one array in memory at a time."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import h5py
import numpy as np

from keras_deepnmt.files import atomic_file


def write_mean(files: Sequence[Path], output: str | Path) -> None:
    """Writes the mean of several `.weights.h5` files of one model.

    Sums in float64; the optimizer is left out. Arrays of integers are taken
    from the last file.

    Args:
        files: the files, in order of training.
        output: the file to write, atomically.
    """
    with atomic_file(output) as temporary, ExitStack() as stack:
        sources = [stack.enter_context(h5py.File(file)) for file in files]
        target = stack.enter_context(h5py.File(temporary, "w"))
        _fill(sources, target)


def _fill(sources, target):
    """Copies the first file's layout with the mean of all files' arrays."""
    for key, value in sources[0].attrs.items():
        target.attrs[key] = value

    def visit(name, item):
        if name.split("/")[0] == "optimizer":
            return
        if isinstance(item, h5py.Group):
            new = target.require_group(name)
        else:
            new = target.create_dataset(name, data=_mean(sources, name, item))
        for key, value in item.attrs.items():
            new.attrs[key] = value

    sources[0].visititems(visit)


def _mean(sources, name, first):
    if first.dtype.kind != "f":
        return sources[-1][name][()]
    total = np.zeros(first.shape, "float64")
    for source in sources:
        total += source[name][()]
    return (total / len(sources)).astype(first.dtype)
