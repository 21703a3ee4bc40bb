"""The versions, the machine and the commit that a result was made with."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import keras_deepnmt
from keras_deepnmt.processes import git_output
from keras_deepnmt.threads import num_cores

_COMMIT_VARIABLE = "DEEPNMT_COMMIT"
_PACKAGES = (
    "keras",
    "tensorflow",
    "tensorflow-text",
    "jax",
    "jaxlib",
    "keras-nlp",
    "sentencepiece",
    "sacrebleu",
    "grain",
    "array-record",
    "numpy",
)


def versions() -> dict[str, str]:
    """Returns the versions of the installed packages that results depend on."""
    installed = {
        "keras_deepnmt": keras_deepnmt.__version__,
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


def commit() -> str:
    """Returns the commit of the source tree.

    `+` is appended if files differ from it. An installed package, and a copy of
    the tree without its history, have no commit: the environment variable
    DEEPNMT_COMMIT is returned instead, or `keras_deepnmt <version>`.
    """
    root = Path(keras_deepnmt.__file__).parents[1]
    if (root / ".git").exists():
        name = git_output(root, "rev-parse", "HEAD")
        changes = git_output(root, "status", "--porcelain", "keras_deepnmt")
        if name is not None and changes is not None:
            return f"{name}+" if changes else name
    version = f"keras_deepnmt {keras_deepnmt.__version__}"
    return os.environ.get(_COMMIT_VARIABLE) or version


def device() -> dict[str, Any]:
    """Describes the machine: processor, usable cores and accelerators."""
    import keras

    return {
        "processor": _processor(),
        "cores": num_cores(),
        "accelerators": _accelerators(keras.config.backend()),
        "backend": keras.config.backend(),
    }


def _accelerators(backend):
    """The models of all accelerators, such as `NVIDIA H200`."""
    if backend == "jax":
        import jax

        devices = [d for d in jax.devices() if d.platform != "cpu"]
        return [device.device_kind for device in devices]
    if backend == "tensorflow":
        import tensorflow as tf

        return [
            tf.config.experimental.get_device_details(gpu).get(
                "device_name", gpu.name
            )
            for gpu in tf.config.list_physical_devices("GPU")
        ]
    return []


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
