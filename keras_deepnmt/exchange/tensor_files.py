"""Reads the tensors of other toolkits' weight files as NumPy arrays."""

import json
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import read_json

_SAFETENSORS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLE = "pytorch_model.bin"
_MOST_LISTED = 5


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Reads the weights of a folder in Hugging Face's layout, by name.

    They are those of `model.safetensors`, of the files that
    `model.safetensors.index.json` names, or else of `pytorch_model.bin`, which
    PyTorch reads without running code (`weights_only`). Floats become float32.
    """
    if (folder / _INDEX).is_file():
        files = _files_of_index(folder / _INDEX)
    elif (folder / _SAFETENSORS).is_file():
        files = [folder / _SAFETENSORS]
    elif (folder / _PICKLE).is_file():
        return read_tensor_file(folder / _PICKLE)
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


def read_pickle(file: Path, safe_classes: Sequence[type] = ()) -> Any:
    """Reads a file that `torch.save` wrote, without running code in it.

    `safe_classes` are plain classes, such as `argparse.Namespace`, that it may
    hold besides tensors and Python's containers.
    """
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{file}: reading it needs the package torch. Install it by `pip "
            "install torch`, or convert the weights to safetensors."
        ) from error
    try:
        with torch.serialization.safe_globals(list(safe_classes)):
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        named = re.search(r"GLOBAL (\S+)", str(error))
        held = f", such as {named[1]}" if named else ""
        raise UserError(
            f"{file}: is damaged, or holds more than tensors and plain "
            f"values{held}, which are not read, since they could run code. "
            "Save the state dict alone."
        ) from error
    except Exception as error:  # PyTorch raises errors of many kinds
        first = str(error).splitlines()[0] if str(error) else repr(error)
        raise UserError(
            f"{file}: cannot be read ({first}). Copy it again."
        ) from error


def state_dict(content: Any, file: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a state dict as float32 arrays."""
    if not isinstance(content, Mapping) or not content:
        raise UserError(
            f"{file}: must hold a state dict: tensors by name. Received: "
            f"{type(content).__name__}"
        )
    for name, tensor in content.items():
        if not isinstance(name, str) or not hasattr(tensor, "detach"):
            raise UserError(
                f"{file}: must hold tensors by name. Received: {name!r}, of "
                f"type {type(tensor).__name__}. Name the key under which the "
                "state dict is."
            )
    return {
        name: _as_float32(tensor.detach().float().numpy(), file, name)
        for name, tensor in content.items()
    }


def read_tensor_file(
    file: Path, key: str | None = None
) -> dict[str, np.ndarray]:
    """Reads a file of tensors: safetensors, `.npz`, or PyTorch's.

    Its name's end tells safetensors and `.npz`. For PyTorch's, `key` is that of
    the state dict in what was saved, such as `model_state_dict`; by default
    all of it is the state dict. Floats become float32.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such file.")
    if file.suffix == ".safetensors":
        return _read_safetensors(file)
    if file.suffix == ".npz":
        return _read_npz(file)
    content = read_pickle(file)
    if key is not None:
        if not isinstance(content, Mapping) or key not in content:
            keys = list(content) if isinstance(content, Mapping) else []
            listed = ", ".join(map(str, keys[:_MOST_LISTED]))
            raise UserError(
                f"{file}: has no key {key!r}. It has: {listed or 'none'}."
            )
        content = content[key]
    return state_dict(content, file)


def _read_npz(file):
    try:
        # Opened here: NumPy leaves a damaged file open.
        with (
            open(file, "rb") as stream,
            np.load(stream, allow_pickle=False) as opened,
        ):
            return {
                name: _as_float32(opened[name], file, name)
                for name in opened.files
            }
    except UserError:
        raise
    except Exception as error:  # zipfile's, zlib's and NumPy's own
        raise UserError(
            f"{file}: cannot be read ({error}). Copy it again."
        ) from error


def _as_float32(value, file, name):
    if value.dtype.kind != "f":
        return value
    value = value.astype("float32")
    if not np.isfinite(value).all():
        raise UserError(f"{file}: {name} has values that are not finite.")
    return value
