"""Conflicts are named exactly, each with the command that resolves it."""

from importlib import metadata

import tensorflow as tf

from keras_deepnmt.commands.doctor import (
    import_fault,
    requirement_faults,
)


def test_what_is_installed_here_fits():
    assert requirement_faults() == []


def test_a_version_outside_the_range_is_named_with_its_remedy():
    version = metadata.version("keras")
    assert requirement_faults(["keras>=99", "numpy>=1"]) == [
        f"keras {version} is installed, >=99 is needed. "
        'python -m pip install "keras>=99"'
    ]


def test_a_missing_package_is_named_with_its_remedy():
    assert requirement_faults(["no-such-package>=2"]) == [
        "no-such-package is not installed. "
        'python -m pip install "no-such-package>=2"'
    ]


def test_extras_are_not_needed():
    assert requirement_faults(['no-such-package; extra == "dev"']) == []


def test_an_import_that_fails_gives_its_last_line():
    fault = import_fault("no_such_module", "python -m pip install it")
    assert "No module named 'no_such_module'" in fault
    assert fault.endswith("python -m pip install it")
    assert import_fault("json", "") is None


def test_the_doctor_tells_conflicts_and_does_no_more(refused, monkeypatch):
    monkeypatch.setattr(
        "keras_deepnmt.commands.doctor.requirement_faults", lambda: ["Wrong."]
    )
    assert "Wrong." in refused("doctor", "--quiet")


def test_no_replicas_are_refused(refused):
    assert "--replicas" in refused("doctor", "--replicas", "0")


def test_more_replicas_than_devices_are_refused(refused):
    # TensorFlow has started, with one processor, which stays whole.
    assert len(tf.config.list_logical_devices("CPU")) == 1
    line = refused("doctor", "--quiet", "--replicas", "3")
    assert "3 replicas" in line and "fresh process" in line


def test_a_module_of_the_current_folder_is_no_installation(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("colorsys", "own_module"):
        (tmp_path / f"{name}.py").write_text(f"open('{name} ran', 'w')")
    assert import_fault("colorsys", "") is None
    assert import_fault("own_module", "").startswith("own_module cannot be")
    assert not list(tmp_path.glob("* ran"))
