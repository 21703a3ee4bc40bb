"""Weights files in Keras' format: checked, read, and written safely.

A weights file may come from a stranger. HDF5 lets an array lie in another file
of the disk, which reading would follow; such files are refused.
"""

import errno
import io
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file

if TYPE_CHECKING:
    import h5py
    import keras

# Upper bound of the bytes that HDF5 and archives add to each array.
_BYTES_PER_ARRAY = 4096
# Keras writes arrays as they are; a compressed one is seldom half as large.
_MOST_EXPANSION = 100
_SMALL_BYTES = 1 << 20


@contextmanager
def opened_weights(file: str | Path) -> Iterator["h5py.File"]:
    """Opens a weights file for reading, all of whose arrays are in it.

    Raises a `UserError` if the file is no HDF5 file, or an array is in another
    file (an external or virtual dataset, a link), or is far larger than the
    bytes that the file holds of it.
    """
    import h5py

    try:
        weights = h5py.File(file)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise UserError(
            f"{file}: not a readable weights file ({reason})."
        ) from error
    with weights:
        _check(weights, file)
        yield weights


def load_weights(model: "keras.Model", file: str | Path) -> None:
    """Loads the weights of a model from a file that is checked first.

    Raises a `UserError` as `opened_weights` does, and a `ValueError` or another
    error of Keras if the weights are another model's.
    """
    with opened_weights(file):
        pass
    model.load_weights(file)


@contextmanager
def written_weights(file: str | Path) -> Iterator["h5py.File"]:
    """Yields an HDF5 file in memory, and writes it atomically at the end.

    HDF5 ends the process if the disk is full while it writes; in this way a
    full disk is an `OSError`, and `file` stays as it was.
    """
    import h5py

    content = io.BytesIO()
    with h5py.File(content, "w") as weights:
        yield weights
    with atomic_file(file) as temporary, open(temporary, "wb") as target:
        target.write(content.getbuffer())


def round_weights(file: str | Path, dtype: str) -> None:
    """Rewrites a weights file with its floating-point arrays in another type.

    `dtype` is their new type, such as `"float16"`; Keras reads them back into
    the variables' own type. The file is replaced when the new one is whole.
    Raises a `UserError` if a value is too large for the type.
    """
    import h5py

    with opened_weights(file) as weights, written_weights(file) as rounded:

        def copy(name, item):
            if isinstance(item, h5py.Group):
                new = rounded.require_group(name)
            else:
                values = item[()]
                if np.issubdtype(item.dtype, np.floating):
                    values = _rounded(values, dtype, f"{file}: {name}")
                new = rounded.create_dataset(name, data=values)
            new.attrs.update(item.attrs)

        rounded.attrs.update(weights.attrs)
        weights.visititems(copy)


def _rounded(values, dtype, place):
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    if not np.array_equal(np.isfinite(rounded), np.isfinite(values)):
        raise UserError(
            f"{place}: has a value that {dtype} cannot hold. Received: "
            f"{np.abs(values).max():.3g}. Leave `dtype` out."
        )
    return rounded


def check_room(
    folder: str | Path, variables: Iterable["keras.Variable"]
) -> None:
    """Raises the system's error if a file of variables has no room in a folder.

    For files that Keras writes, since HDF5 ends the process if a write fails
    midway. The space is reserved and freed again: this detects a full disk, a
    quota and a limit on file sizes.
    """
    needed = sum(
        math.prod(variable.shape) * 4 + _BYTES_PER_ARRAY
        for variable in variables
    )
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    if hasattr(os, "posix_fallocate"):
        with tempfile.TemporaryFile(dir=folder) as room:
            os.posix_fallocate(room.fileno(), 0, needed)


def _check(weights, file):
    """Raises a `UserError` for the first array that is not in the file."""
    import h5py

    def visit(name, item):
        if isinstance(item, h5py.Group):
            for key in item:
                link = item.get(key, getlink=True)
                if not isinstance(link, h5py.HardLink):
                    _refuse(file, f"{name}/{key}", "is a link")
        elif isinstance(item, h5py.Dataset):
            fault = _fault(item)
            if fault is not None:
                _refuse(file, name, fault)

    visit("", weights)
    weights.visititems(visit)


def _fault(dataset) -> str | None:
    import h5py

    layout = dataset.id.get_create_plist()
    own = (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
    if layout.get_layout() not in own or layout.get_external_count():
        return "lies outside this file"
    # Not `nbytes`, which wraps around.
    size = math.prod(dataset.shape or ()) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if size > max(_SMALL_BYTES, _MOST_EXPANSION * stored):
        return f"would have {size:,} bytes, of which the file holds {stored:,}"
    return None


def _refuse(file, name, fault):
    raise UserError(
        f"{file}: {name.strip('/')} {fault}, so the file was not read. Weights "
        "must be in the file itself, as Keras writes them; take it from whom "
        "you trust."
    )
