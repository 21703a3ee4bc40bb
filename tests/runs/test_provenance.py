"""What must be true of the versions that are recorded with a result.

* every installed package that changes a result is recorded, none is imported
* a package that is not installed is left out
* an accelerator has the name of its model, whatever the backend calls it
* a copy without history has the commit that the user names
"""

import subprocess
import sys
import types
from importlib import metadata

import keras
import tensorflow as tf
from digit_run import environment

from keras_deepnmt.runs import provenance

PROGRAM = """
import sys
from keras_deepnmt.runs.provenance import versions
print(*versions())
loaded = {"jax", "jaxlib", "tensorflow", "tensorflow_text", "grain"}
assert not loaded & sys.modules.keys(), loaded & sys.modules.keys()
"""


def test_the_packages_that_read_data_and_compute_are_recorded():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    packages = {"jax", "jaxlib", "tensorflow-text", "grain", "array-record"}
    installed = set()
    for package in packages:
        try:
            installed.add(metadata.distribution(package) and package)
        except metadata.PackageNotFoundError:
            continue
    assert {"tensorflow-text", "grain", "array-record"} <= installed
    assert packages & set(done.stdout.split()) == installed


def test_a_package_that_is_not_installed_is_left_out(monkeypatch):
    real = metadata.version

    def version(package):
        if package == "jax":
            raise metadata.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(metadata, "version", version)
    recorded = provenance.versions()
    assert "jax" not in recorded and "grain" in recorded


def test_an_accelerator_is_named_on_tensorflow(monkeypatch):
    gpus = [types.SimpleNamespace(name=f"gpu:{n}") for n in range(2)]
    known = {"gpu:0": {"device_name": "NVIDIA H200"}, "gpu:1": {}}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(
        tf.config.experimental,
        "get_device_details",
        lambda gpu: known[gpu.name],
    )
    monkeypatch.setattr(keras.config, "backend", lambda: "tensorflow")
    assert provenance.device()["accelerators"] == ["NVIDIA H200", "gpu:1"]


def test_an_accelerator_is_named_on_jax(monkeypatch):
    devices = [
        types.SimpleNamespace(platform="gpu", device_kind="NVIDIA H200"),
        types.SimpleNamespace(platform="cpu", device_kind="cpu"),
    ]
    fake = types.SimpleNamespace(devices=lambda: devices)
    monkeypatch.setitem(sys.modules, "jax", fake)
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    device = provenance.device()
    assert device["accelerators"] == ["NVIDIA H200"]
    assert device["backend"] == "jax"


def test_a_copy_without_history_has_the_commit_that_the_user_names(
    monkeypatch, tmp_path
):
    package = types.SimpleNamespace(
        __file__=str(tmp_path / "keras_deepnmt" / "__init__.py"),
        __version__="7.1",
    )
    monkeypatch.setattr(provenance, "keras_deepnmt", package)
    monkeypatch.delenv("DEEPNMT_COMMIT", raising=False)
    assert provenance.commit() == "keras_deepnmt 7.1"
    monkeypatch.setenv("DEEPNMT_COMMIT", "0123abc")
    assert provenance.commit() == "0123abc"
