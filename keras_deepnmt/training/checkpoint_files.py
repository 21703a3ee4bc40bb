"""The files of one checkpoint: written, read and checked for damage."""

import errno
import json
import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE, file_sha256
from keras_deepnmt.models.training_step.training_state import seed_variables

STATE_FILE = "state.npz"
# Written last: a folder without it is not a checkpoint.
SEAL_FILE = "checkpoint.json"
# Upper bound of the bytes that HDF5 and the archive add to each array.
_BYTES_PER_ARRAY = 4096


def write_checkpoint(
    folder: Path,
    model: keras.Model,
    step: int,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Writes a checkpoint's files into an empty folder, `checkpoint.json` last.

    `details` are further entries of that file. Raises an `OSError`, or a
    `RuntimeError` of HDF5, if the disk is full or cannot be written.
    """
    _check_room(model, folder)
    model.save_weights(folder / WEIGHTS_FILE)
    np.savez(folder / STATE_FILE, *_unsaved_state(model))
    hashes = {
        name: file_sha256(folder / name) for name in (WEIGHTS_FILE, STATE_FILE)
    }
    seal = {"step": step, "sha256": hashes, **(details or {})}
    _write_text(folder / SEAL_FILE, json.dumps(seal, indent=2))


def read_checkpoint(folder: Path, model: keras.Model) -> None:
    """Restores weights, optimizer and random states from an undamaged folder.

    Raises a `UserError` if they belong to another model or optimizer.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    try:
        with warnings.catch_warnings():
            # Keras only warns if it does not load the optimizer.
            warnings.filterwarnings("error", "Skipping variable loading")
            model.load_weights(folder / WEIGHTS_FILE)
    except (ValueError, KeyError, UserWarning) as error:
        raise UserError(
            f"{folder / WEIGHTS_FILE}: belongs to another model or optimizer "
            f"({str(error).splitlines()[0]}). Use the recipe it was "
            "trained with."
        ) from error
    with np.load(folder / STATE_FILE) as arrays:
        values = [arrays[f"arr_{i}"] for i in range(len(arrays.files))]
    variables = seed_variables(model)
    if len(variables) != len(values):
        raise UserError(
            f"{folder / STATE_FILE}: holds {len(values)} random states, the "
            f"model has {len(variables)}. Use the recipe it was trained with."
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    if hasattr(model, "spread_seeds"):
        model.spread_seeds()


def checkpoint_fault(folder: Path) -> str | None:
    """Describes the damage of a checkpoint in a sentence.

    Returns `None` if every file has its recorded SHA-256.
    """
    try:
        seal = json.loads((folder / SEAL_FILE).read_text(encoding="utf-8"))
        for name, expected in seal["sha256"].items():
            if file_sha256(folder / name) != expected:
                return (
                    f"{folder / name}: damaged (its SHA-256 is not the "
                    "recorded one)."
                )
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{folder}: damaged or missing ({error})."
    return None


def _check_room(model, folder):
    """Raises the system's own error if a checkpoint does not fit on the disk.

    HDF5 aborts the process if a write fails midway, so the space is reserved
    first: this detects a full disk, a quota and a limit on file sizes.
    """
    variables = list(model.variables)
    if getattr(model, "optimizer", None) is not None:
        variables += model.optimizer.variables
    needed = sum(
        math.prod(variable.shape) * 4 + _BYTES_PER_ARRAY
        for variable in variables
    )
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    if hasattr(os, "posix_fallocate"):
        with tempfile.TemporaryFile(dir=folder) as room:
            os.posix_fallocate(room.fileno(), 0, needed)


def _unsaved_state(model):
    seeds = seed_variables(model)
    return [keras.ops.convert_to_numpy(seed) for seed in seeds]


def _write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
