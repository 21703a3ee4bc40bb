"""Runs a test's program under a strategy and a backend, in a process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from digit_run import environment

FOLDER = Path(__file__).parent
BACKENDS = [("mirrored", "tensorflow"), ("one_device", "jax")]


def found_by(script, strategy, backend):
    """What the program prints: a JSON object in its last line."""
    if backend == "jax":
        pytest.importorskip("jax")
    result = subprocess.run(
        [sys.executable, script, strategy],
        env={**environment(), "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])
