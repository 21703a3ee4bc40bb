"""The files of one checkpoint: written, read and checked for damage."""

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from zipfile import BadZipFile

import keras
import numpy as np
from pydantic import AfterValidator, BaseModel

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import WEIGHTS_FILE, file_sha256
from keras_deepnmt.json_files import read_json
from keras_deepnmt.models.training_step.training_state import seed_variables
from keras_deepnmt.weights_files import check_room, load_weights

STATE_FILE = "state.npz"
# Written last: a folder without it is not a checkpoint.
SEAL_FILE = "checkpoint.json"


def _check_table(hashes):
    for name in (WEIGHTS_FILE, STATE_FILE):
        if name not in hashes:
            raise ValueError(f"list {name}")
    return hashes


class _Seal(BaseModel, extra="allow"):
    """The values of `checkpoint.json` that are read, and their rules."""

    sha256: Annotated[dict[str, str], AfterValidator(_check_table)]


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
    variables = list(model.variables)
    if getattr(model, "optimizer", None) is not None:
        variables += model.optimizer.variables
    check_room(folder, variables)
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
            load_weights(model, folder / WEIGHTS_FILE)
    except UserError:
        raise
    except (ValueError, KeyError, UserWarning) as error:
        raise UserError(
            f"{folder / WEIGHTS_FILE}: belongs to another model or optimizer "
            f"({str(error).splitlines()[0]}). Use the recipe it was "
            "trained with."
        ) from error
    try:
        # Opened here: NumPy leaves a file open that it cannot read.
        with (
            open(folder / STATE_FILE, "rb") as stream,
            np.load(stream) as arrays,
        ):
            values = [arrays[f"arr_{i}"] for i in range(len(arrays.files))]
    except (ValueError, LookupError, EOFError, BadZipFile, OSError) as error:
        # Not damaged on the way: it has its hash.
        raise UserError(
            f"{folder / STATE_FILE}: not a file of random states ({error}). "
            "Delete the checkpoint."
        ) from error
    variables = seed_variables(model)
    if [v.shape for v in variables] != [v.shape for v in values]:
        raise UserError(
            f"{folder / STATE_FILE}: holds {len(values)} random states, the "
            f"model has {len(variables)}, or they differ in their shapes. Use "
            "the recipe it was trained with."
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
        seal = read_json(folder / SEAL_FILE, _Seal)
        for name, expected in seal["sha256"].items():
            if file_sha256(folder / name) != expected:
                return (
                    f"{folder / name}: damaged (its SHA-256 is not the "
                    "recorded one)."
                )
    except (OSError, UserError) as error:
        return f"{folder}: damaged or missing ({error})."
    return None


def _unsaved_state(model):
    seeds = seed_variables(model)
    return [keras.ops.convert_to_numpy(seed) for seed in seeds]


def _write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
