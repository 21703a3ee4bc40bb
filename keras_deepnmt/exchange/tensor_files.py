"""Reads the tensors of other toolkits' weight files as NumPy arrays."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import read_json

_SAFETENSORS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLE = "pytorch_model.bin"


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Reads the weights of a folder in Hugging Face's layout.

    They are those of `model.safetensors`, of the files that
    `model.safetensors.index.json` names, or else of `pytorch_model.bin`, which
    PyTorch reads without running code (`weights_only`).

    Args:
        folder: the folder.

    Returns:
        Float32 arrays (others as they are) by their names.

    Raises:
        UserError: if there is no such file, it is damaged, or the package that
            reads it is not installed.
    """
    if (folder / _INDEX).is_file():
        files = _files_of_index(folder / _INDEX)
    elif (folder / _SAFETENSORS).is_file():
        files = [folder / _SAFETENSORS]
    elif (folder / _PICKLE).is_file():
        return _read_pickle(folder / _PICKLE)
    else:
        raise UserError(
            f"{folder}: has no weights: {_SAFETENSORS} or {_PICKLE}."
        )
    tensors = {}
    for file in files:
        tensors |= _read_safetensors(file)
    return tensors


def _files_of_index(file):
    names = read_json(file, dict[str, Any]).get("weight_map")
    if not isinstance(names, Mapping) or not all(
        isinstance(name, str) and Path(name).name == name
        for name in names.values()
    ):
        raise UserError(
            f"{file}: must have an object `weight_map` of file names in the "
            "same folder."
        )
    return [file.parent / name for name in sorted(set(names.values()))]


def _read_safetensors(file):
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise UserError(
            f"{file}: reading it needs the package safetensors. Install it by "
            "`pip install keras_deepnmt[exchange]`."
        ) from error
    try:
        with safe_open(file, framework="numpy") as opened:
            return {
                name: _as_float32(opened.get_tensor(name), file, name)
                for name in opened.keys()  # noqa: SIM118
            }
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise UserError(
            f"{file}: cannot be read ({error}). Copy it again."
        ) from error
    except TypeError as error:  # a type that NumPy lacks, such as bfloat16
        raise UserError(
            f"{file}: has a type of numbers that cannot be read ({error}). "
            "Save the model as float32."
        ) from error


def _read_pickle(file):
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{file}: reading it needs the package torch. Install it by `pip "
            "install torch`, or convert the weights to safetensors."
        ) from error
    try:
        tensors = torch.load(file, map_location="cpu", weights_only=True)
        return {
            name: _as_float32(tensor.float().numpy(), file, name)
            for name, tensor in tensors.items()
        }
    except Exception as error:  # PyTorch raises errors of many kinds
        first = str(error).splitlines()[0] if str(error) else repr(error)
        raise UserError(
            f"{file}: cannot be read ({first}). Copy it again."
        ) from error


def _as_float32(value, file, name):
    if value.dtype.kind != "f":
        return value
    value = value.astype("float32")
    if not np.isfinite(value).all():
        raise UserError(f"{file}: {name} has values that are not finite.")
    return value
