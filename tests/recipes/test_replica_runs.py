"""Runs of a recipe on two replicas, each in a real process."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
from broken_runs import checkpoint
from digit_run import environment

TWO = ("training.strategy=mirrored", "training.replicas=2")


def start(recipe_file, run_dir, *changes):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "keras_deepnmt", "train", recipe_file),
            *("--run-dir", run_dir, "--quiet", "--set"),
            *("training.batch_tokens=70", "training.checkpoint_every=2"),
            *changes,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def finish(process):
    error = process.communicate()[1]
    assert process.returncode == 0, error


def test_two_replicas_end_where_one_device_ends(recipe_file, tmp_path):
    # Two parts of a batch, so that the batches are those of two replicas.
    ways = {"one": ("training.gradient_accumulation_steps=2",), "two": TWO}
    for name, changes in ways.items():
        more = (*changes, "model.overrides.dropout=0.0")
        finish(start(recipe_file, tmp_path / name, *more))
    one, two = (checkpoint(tmp_path / name, 6) for name in ways)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_allclose(one[name], two[name], atol=1e-6)


def test_a_run_killed_on_two_replicas_ends_bit_identical(recipe_file, tmp_path):
    finish(start(recipe_file, tmp_path / "whole", *TWO))
    process = start(recipe_file, tmp_path / "killed", *TWO)
    first = tmp_path / "killed" / "checkpoints" / "step-00000002"
    end = time.monotonic() + 200
    while not first.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed" / "run.json").exists()
    finish(start(recipe_file, tmp_path / "killed", *TWO))
    whole, killed = (
        checkpoint(tmp_path / name, 6) for name in ("whole", "killed")
    )
    assert whole.keys() == killed.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name], killed[name])
