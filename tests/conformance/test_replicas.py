"""Two replicas make the update that one device makes on the joint batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def differences():
    script = Path(__file__).with_name("two_replicas.py")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(script.parents[2]), *sys.path]),
    }
    result = subprocess.run(
        [sys.executable, script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_two_replicas_update_as_one_device(differences, distinct_entry):
    found = differences[distinct_entry.name]
    assert found["moved"] > 1e-3
    assert found["weights"] < 1e-6
    assert found["loss"] < 1e-5
