"""What must be true of the versions that are recorded with a result.

* every installed package that changes a result is recorded, none is imported
* a package that is not installed is left out
"""

import subprocess
import sys
from importlib import metadata

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
