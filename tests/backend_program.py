"""Runs a test's program under a strategy and a backend, in a process."""

import json
from pathlib import Path

import pytest
from digit_run import environment
from forked_processes import run_forked

FOLDER = Path(__file__).parent
BACKENDS = [("mirrored", "tensorflow"), ("one_device", "jax")]


def found_by(script, strategy, backend):
    """What the program prints: a JSON object in its last line."""
    if backend == "jax":
        pytest.importorskip("jax")
    result = run_forked(
        [script, strategy], env=environment(KERAS_BACKEND=backend), timeout=300
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.splitlines()[-1])
