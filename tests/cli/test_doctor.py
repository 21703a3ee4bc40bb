"""The doctor's table, from a real process: replicas train as one device."""

import re

import pytest
from digit_run import deepnmt_process, environment
from forked_processes import run_forked

pytestmark = pytest.mark.thorough

WAYS = ["", ", XLA", ", accumulation", ", killed and resumed"]
# `deepnmt doctor` without one of the two optimizers.
ADAM_ALONE = """
import sys
from keras_deepnmt.cli import main
from keras_deepnmt.training import replica_proof
del replica_proof._RATES["SGD"]
sys.exit(main(["doctor", "--replicas", "2"]))
"""


@pytest.fixture(scope="module")
def doctor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    return run_forked(["-c", ADAM_ALONE], cwd=folder, env=environment())


def test_every_way_ends_at_the_weights_of_one_device(doctor):
    assert_every_way_ends_there(doctor, "Adam")


# Slow: the table is that of the test above, with rows of SGD before it.
@pytest.mark.slow
def test_with_each_optimizer_it_ends_at_the_weights_of_one_device(tmp_path):
    done = deepnmt_process("doctor", "--replicas", "2", folder=tmp_path)
    assert_every_way_ends_there(done, "SGD", "Adam")


def assert_every_way_ends_there(doctor, *rules):
    assert doctor.returncode == 0, doctor.stderr
    rows = re.findall(
        r"^(2 replicas.*?) +(SGD|Adam) +(\S+) +\S+$", doctor.stdout, re.M
    )
    found = {(way, rule): float(value) for way, rule, value in rows}
    for rule in rules:
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
