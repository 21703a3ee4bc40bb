"""The doctor's table, from a real process: replicas train as one device."""

import re

import pytest
from digit_run import deepnmt_process, environment
from forked_processes import run_forked

pytestmark = pytest.mark.thorough

WAYS = ["", ", XLA", ", accumulation", ", killed and resumed"]
# `deepnmt doctor` with given weights in the place of trained ones.
WITHOUT_TRAINING = """
import sys
import numpy as np
from keras_deepnmt.cli import main
from keras_deepnmt.training import replica_proof

def weights_after(strategy, optimizer, *, dtype="float32", **options):
    return [np.full(3, 0.25 if dtype == "float32" else 0.26)]

replica_proof._weights_after = weights_after
replica_proof._kill_in_the_middle = lambda *arguments: None
sys.exit(main(["doctor", "--replicas", "2"]))
"""


@pytest.fixture(scope="module")
def doctor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    return run_forked(["-c", WITHOUT_TRAINING], cwd=folder, env=environment())


def test_the_table_has_every_way(doctor):
    assert_every_way_ends_there(doctor)


# Slow: updates on replicas are proven in tests/conformance/test_replicas.py,
# runs that are killed on them in tests/runs/test_replica_runs.py.
@pytest.mark.slow
def test_every_way_ends_at_the_weights_of_one_device(tmp_path):
    assert_every_way_ends_there(
        deepnmt_process("doctor", "--replicas", "2", folder=tmp_path)
    )


def assert_every_way_ends_there(doctor):
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
