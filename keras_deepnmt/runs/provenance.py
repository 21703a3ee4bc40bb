"""The versions, the machine and the commit that a result was made with."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import keras_deepnmt

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

    `+` is appended if files differ from it. An installed package has no
    commit: `keras_deepnmt <version>` is returned instead.
    """
    root = Path(keras_deepnmt.__file__).parents[1]
    if (root / ".git").exists():
        try:
            name = _git(root, "rev-parse", "HEAD")
            changes = _git(root, "status", "--porcelain", "keras_deepnmt")
            return f"{name}+" if changes else name
        except (OSError, subprocess.SubprocessError):
            pass
    return f"keras_deepnmt {keras_deepnmt.__version__}"


def device() -> dict[str, Any]:
    """Describes the machine: processor, usable cores and accelerators."""
    import keras

    try:
        accelerators = keras.distribution.list_devices("gpu")
    except RuntimeError:  # raised on JAX if there are none
        accelerators = []
    cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count()))
    return {
        "processor": _processor(),
        "cores": len(cores(0)),
        "accelerators": [str(accelerator) for accelerator in accelerators],
        "backend": keras.config.backend(),
    }


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _git(root, *arguments):
    return subprocess.run(
        ["git", "-C", str(root), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    ).stdout.strip()
