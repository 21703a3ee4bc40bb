"""Reads the file of weights of a CTranslate2 model with NumPy alone."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError

# Of models that CTranslate2 writes since version 3, and of its Transformer.
_BINARY_VERSION = 6
_SPEC, _REVISION = "TransformerSpec", 7
# By the number that names each in the file; NumPy has no bfloat16.
_DTYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
_MOST_AXES = 8


def read_binary(
    file: Path,
) -> tuple[dict[str, np.ndarray], set[str]]:
    """Reads the variables of `model.bin` of a Transformer, by name.

    Numbers of 16 bits become float32, and so do integers with a scale, which
    loses nothing that is in the file. The second value has the types of these
    integers. A name that stands for another variable has its value.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error
    reader = _Reader(file, content)
    _check_kind(reader)
    stored = dict(reader.variable() for _ in range(reader.number("I")))
    aliases = {reader.text(): reader.text() for _ in range(reader.number("I"))}
    if reader.place != len(content):
        raise reader.damaged("goes on after its last variable")
    for alias, name in aliases.items():
        if name not in stored:
            raise reader.damaged(f"{alias} stands for {name}, which it lacks")
    quantized = set()
    variables = {}
    for name, value in stored.items():
        if name.endswith("_scale") and name.removesuffix("_scale") in stored:
            continue
        scale = stored.get(f"{name}_scale")
        if scale is not None:
            quantized.add(value.dtype.name)
            value = _dequantized(reader, name, value, scale)
        variables[name] = value
    for alias, name in aliases.items():
        variables[alias] = variables[name]
    return variables, quantized


def _check_kind(reader):
    version = reader.number("I")
    if version != _BINARY_VERSION:
        raise UserError(
            f"{reader.file}: must be of binary version {_BINARY_VERSION}, that "
            f"of CTranslate2 3 and 4. Received: {version}. Convert the "
            "original model again."
        )
    spec, revision = reader.text(), reader.number("I")
    if (spec, revision) != (_SPEC, _REVISION):
        raise UserError(
            f"{reader.file}: must be a {_SPEC} of revision {_REVISION}, since "
            f"others cannot be imported. Received: {spec}, {revision}"
        )


def _dequantized(reader, name, value, scale):
    if scale.shape not in ((), value.shape[:1]):
        raise reader.damaged(
            f"the scale of {name} {value.shape} has the shape {scale.shape}"
        )
    if not scale.all():
        raise reader.damaged(f"the scale of {name} has zeros")
    columns = scale.reshape((-1,) + (1,) * (value.ndim - 1))
    return value.astype("float32") / columns


class _Reader:
    def __init__(self, file, content):
        self.file = file
        self.content = content
        self.place = 0

    def damaged(self, problem):
        return UserError(f"{self.file}: damaged: {problem}. Copy it again.")

    def take(self, size):
        end = self.place + size
        if end > len(self.content):
            raise self.damaged(
                f"ends after {len(self.content):,} of at least {end:,} bytes"
            )
        found = self.content[self.place : end]
        self.place = end
        return found

    def number(self, form) -> int:
        form = f"<{form}"
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        found = self.take(self.number("H"))
        try:
            return found.rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise self.damaged("a name is not UTF-8") from error

    def variable(self) -> tuple[str, Any]:
        name = self.text()
        axes = self.number("B")
        if axes > _MOST_AXES:
            raise self.damaged(f"{name} has {axes} axes")
        shape = tuple(self.number("I") for _ in range(axes))
        kind, size = self.number("B"), self.number("I")
        if kind >= len(_DTYPES):
            raise self.damaged(f"{name} is of the unknown type {kind}")
        dtype = _DTYPES[kind]
        stored = np.dtype("uint16" if dtype == "bfloat16" else dtype)
        if size != int(np.prod(shape, dtype=object)) * stored.itemsize:
            raise self.damaged(f"{name} {shape} has {size:,} bytes")
        value = np.frombuffer(self.take(size), stored.newbyteorder("<"))
        value = value.reshape(shape)
        if dtype == "bfloat16":
            # The upper half of a float32.
            value = (value.astype("uint32") << 16).view("float32")
        if value.dtype.kind == "f":
            value = value.astype("float32")
            if not np.isfinite(value).all():
                raise UserError(
                    f"{self.file}: {name} has values that are not finite."
                )
        return name, value
