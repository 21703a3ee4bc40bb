"""Keeps what TensorFlow traced, so that the next process need not trace it.

Tracing a search takes seconds of Python for each shape. Kept programs of XLA do
not save it, since TensorFlow finds them by the traced function. An entry
holds such a function. It is used where all that tracing reads is the same: the
code of this package, the versions of the libraries, the model's configuration
and variables, the shapes and the options. Weights are no part of an entry.
"""

import functools
import hashlib
import json
import re
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_deepnmt.files import bytes_sha256, write_bytes
from keras_deepnmt.models.compilation.tensorflow_programs import NamedCall

# Code of others may change without another version.
_OWN_MODULES = ("keras", "keras_deepnmt", "builtins")
# A name that differs in each process, such as `<object at 0x7f…>`.
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
# The folder of the entries while they are kept.
_folders = []


def keep_traces(folder: Path | None) -> None:
    """Keeps the traces of this process in a folder; `None` ends that."""
    _folders[:] = [] if folder is None else [folder]


class KeptTrace:
    """The entry of a function of a model.

    Args:
        model: the model, or anything with `variables`.
        function: the function, of the model and tensors.
        arguments: hashable, all that the trace depends on besides the model:
            shapes, types and options.
    """

    def __init__(self, model, function, arguments):
        self._variables = list(model.variables)
        self._file = None
        if _folders:
            content = _describe(model, self._variables, function, arguments)
            if content is not None:
                name = bytes_sha256(content.encode())[:40]
                self._file = _folders[0] / f"{name}.trace"

    def read(self):
        """Returns the function that was kept, for use in a `tf.function`.

        Returns `None` if there is none, or its file is damaged.
        """
        if self._file is None:
            return None
        try:
            digest, header, graph = self._file.read_bytes().split(b"\n", 2)
            if digest.decode() != bytes_sha256(header + graph):
                return None
        except (OSError, ValueError):
            return None
        header = json.loads(header)
        graph_def = tf.compat.v1.GraphDef.FromString(graph)
        call = NamedCall(
            graph_def, _decoded(header["structure"]), header["shapes"]
        )
        captured = [self._variables[n].value.handle for n in header["captured"]]
        return lambda *tensors: call(tensors, captured)

    def write(self, program):
        """Keeps a `CompiledProgram` that was called in a `tf.function`.

        Nothing is kept of what captures more than variables of the model, or if
        the file cannot be written.
        """
        if self._file is None:
            return
        call, captured = program.last_call()
        numbers = {
            id(variable.value.handle): number
            for number, variable in enumerate(self._variables)
        }
        try:
            header = {
                "captured": [numbers[id(tensor)] for tensor in captured],
                "shapes": [shape.as_list() for shape in call.shapes],
                "structure": _encoded(call.structure),
            }
        except (KeyError, TypeError):
            return
        header = json.dumps(header).encode()
        graph = call.graph_def.SerializeToString(deterministic=True)
        digest = bytes_sha256(header + graph).encode()
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self._file, b"\n".join([digest, header, graph]))
        except OSError:  # such as a full disk
            return


def _describe(model, variables, function, arguments):
    """Returns all that tracing reads, as text; `None` if that is not known."""
    try:
        name = f"{function.__module__}.{function.__qualname__}"
        config = {
            "class_name": type(model).__name__,
            "module": type(model).__module__,
            # Without that of `compile`, which a search does not read.
            "config": keras.saving.serialize_keras_object(model.get_config()),
        }
        content = json.dumps(
            {
                "code": _code_sha256(),
                "versions": _versions(),
                "floatx": keras.config.floatx(),
                "flash": keras.config.is_flash_attention_enabled(),
                "model": config,
                "variables": [
                    (variable.path, tuple(variable.shape), variable.dtype)
                    for variable in variables
                ],
                "function": name,
                "arguments": repr(arguments),
            },
            sort_keys=True,
        )
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        return None
    # A function within another one may read the variables of that.
    is_known = name.startswith("keras_deepnmt.") and "<" not in name
    if not is_known or not _is_own(config) or _ADDRESS.search(content):
        return None
    return content


def _is_own(config):
    """Whether all classes of a configuration are of this package and Keras."""
    if isinstance(config, dict):
        if "class_name" in config:
            module = config.get("module")
            if name := config.get("registered_name"):
                found = keras.saving.get_registered_object(name)
                module = getattr(found, "__module__", module)
            if (module or "").partition(".")[0] not in _OWN_MODULES:
                return False
        config = list(config.values())
    if isinstance(config, (list, tuple)):
        return all(map(_is_own, config))
    return True


def _versions():
    """Returns the versions of the libraries that trace."""
    return [tf.__version__, keras.__version__, np.__version__]


@functools.cache
def _code_sha256():
    """Returns the SHA-256 of the source files of this package."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _encoded(nest):
    """Returns a nest of outputs as JSON; raises a `TypeError` for others."""
    if type(nest) is tuple:
        return {"tuple": [_encoded(value) for value in nest]}
    if isinstance(nest, list):
        return {"list": [_encoded(value) for value in nest]}
    if isinstance(nest, dict):
        if not all(isinstance(name, str) for name in nest):
            raise TypeError(f"Not names: {list(nest)}")
        return {"dict": {name: _encoded(nest[name]) for name in nest}}
    if tf.nest.is_nested(nest) or nest is None:
        raise TypeError(f"No dict, list or tuple: {type(nest)}")
    return 0


def _decoded(nest):
    """Returns a nest of outputs from its JSON, with zeros as its leaves."""
    if nest == 0:
        return 0
    [(kind, values)] = nest.items()
    if kind == "dict":
        return {name: _decoded(value) for name, value in values.items()}
    values = map(_decoded, values)
    return tuple(values) if kind == "tuple" else list(values)
