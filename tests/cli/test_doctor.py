"""The doctor's table, from a real process: replicas train as one device."""

import re

import pytest
from digit_run import deepnmt_process

pytestmark = pytest.mark.thorough

WAYS = ["", ", XLA", ", accumulation", ", killed and resumed"]


@pytest.fixture(scope="module")
def doctor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    return deepnmt_process("doctor", "--replicas", "2", folder=folder)


def test_every_way_ends_at_the_weights_of_one_device(doctor):
    assert doctor.returncode == 0, doctor.stderr
    rows = re.findall(
        r"^(2 replicas.*?) +(SGD|Adam) +(\S+) +\S+$", doctor.stdout, re.M
    )
    found = {(way, rule): float(value) for way, rule, value in rows}
    for rule in ("SGD", "Adam"):
        for way in WAYS:
            assert found.pop((f"2 replicas{way}", rule)) <= 1e-6
        # Half precision differs, and not by much.
        assert 1e-6 < found.pop(("2 replicas, mixed_bfloat16", rule)) < 0.1
    assert not found


def test_versions_and_devices_are_told(doctor):
    for line in ("^tensorflow 2", "^keras 3", "^cores: ", "^accelerators: "):
        assert re.search(line, doctor.stdout, re.M)
    assert "Training with replicas gives the same weights" in doctor.stderr


def test_one_replica_is_not_compared_with_itself(tmp_path):
    done = deepnmt_process("doctor", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "optimizer" not in done.stdout
