"""Runs of a recipe on two replicas, of one process and of two."""

import csv
import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from broken_runs import checkpoint
from digit_run import environment
from forked_processes import ForkedProcess

pytestmark = pytest.mark.thorough

TWO = ("training.strategy=mirrored", "training.replicas=2")
# All that a checkpoint must hold beside the weights.
STATEFUL = (
    "training.optimizer.average_momentum=0.5",
    "training.average_checkpoints=1",
    "training.learning_rate.schedule=plateau",
    "training.learning_rate.peak=0.3",
    "training.learning_rate.divide_by=2",
    "training.validate_every=2",
    "training.freeze=[encoder_block_1/attention/*]",
    "decoding.num_beams=1",
)


# Compares BLEU by the weights, where no other run's weights differ a little.
WITHOUT_SEARCH = (Path(__file__).with_name("without_search.py"),)


def start(
    recipe_file,
    run_dir,
    *changes,
    program=("-m", "keras_deepnmt"),
    **variables,
):
    return ForkedProcess(
        [
            *(*program, "train", recipe_file),
            *("--run-dir", run_dir, "--quiet", "--set"),
            *("training.batch_tokens=70", "training.max_shapes=1"),
            "training.checkpoint_every=2",
            *changes,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(**variables),
    )


def finish(process):
    error = process.communicate()[1]
    assert process.returncode == 0, error
    return error


def start_workers(recipe_file, run_dir):
    """Starts two processes that know each other by TF_CONFIG."""
    with socket.socket() as first, socket.socket() as second:
        for free in (first, second):
            free.bind(("127.0.0.1", 0))
        names = [
            f"127.0.0.1:{free.getsockname()[1]}" for free in (first, second)
        ]
    return [
        start(
            recipe_file,
            run_dir,
            "training.strategy=multi_worker",
            *STATEFUL,
            TF_CONFIG=json.dumps(
                {
                    "cluster": {"worker": names},
                    "task": {"type": "worker", "index": index},
                }
            ),
        )
        for index in range(2)
    ]


def wait_for_a_checkpoint(run_dir, *processes):
    first = run_dir / "checkpoints" / "step-00000002"
    end = time.monotonic() + 200
    while not first.exists():
        for process in processes:
            assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def kill_after_a_checkpoint(run_dir, *processes):
    wait_for_a_checkpoint(run_dir, *processes)
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.communicate()
    assert not (run_dir / "run.json").exists()


def bleu_of(run_dir):
    """All validations of a run."""
    with open(run_dir / "log.csv", encoding="utf-8", newline="") as file:
        return [row["val_bleu"] for row in csv.DictReader(file)]


def test_two_replicas_end_where_one_device_ends(recipe_file, tmp_path):
    # Two parts of a batch, so that the batches are those of two replicas.
    ways = {"one": ("training.gradient_accumulation_steps=2",), "two": TWO}
    for name, changes in ways.items():
        more = (*changes, "model.overrides.dropout=0.0")
        finish(
            start(recipe_file, tmp_path / name, *more, program=WITHOUT_SEARCH)
        )
    one, two = (checkpoint(tmp_path / name, 6) for name in ways)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_allclose(one[name], two[name], atol=1e-6)


@pytest.fixture(scope="module")
def whole_run(recipe_file, tmp_path_factory):
    """A run on two replicas of one process, with dropout."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    finish(start(recipe_file, run_dir, *TWO, *STATEFUL))
    return run_dir


def test_a_run_killed_on_two_replicas_ends_bit_identical(
    whole_run, recipe_file, tmp_path
):
    run_dir = tmp_path / "killed"
    kill_after_a_checkpoint(
        run_dir, start(recipe_file, run_dir, *TWO, *STATEFUL)
    )
    finish(start(recipe_file, run_dir, *TWO, *STATEFUL))
    whole, killed = (checkpoint(run, 6) for run in (whole_run, run_dir))
    assert whole.keys() == killed.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name], killed[name])
    assert bleu_of(run_dir) == bleu_of(whole_run)


# Slow: the longest; only the backend differs from the run that is killed above.
@pytest.mark.slow
def test_a_run_on_jax_interrupted_on_two_devices_ends_bit_identical(
    recipe_file, tmp_path
):
    jax = {"KERAS_BACKEND": "jax", "program": WITHOUT_SEARCH}
    whole = start(recipe_file, tmp_path / "whole", *TWO, *STATEFUL, **jax)
    assert "warning" not in finish(whole)
    run_dir = tmp_path / "interrupted"
    process = start(recipe_file, run_dir, *TWO, *STATEFUL, **jax)
    wait_for_a_checkpoint(run_dir, process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    finish(start(recipe_file, run_dir, *TWO, *STATEFUL, **jax))
    whole, again = (checkpoint(run, 6) for run in (tmp_path / "whole", run_dir))
    assert whole.keys() == again.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name], again[name])
    assert bleu_of(run_dir) == bleu_of(tmp_path / "whole")


def test_two_workers_killed_and_resumed_end_where_two_replicas_end(
    whole_run, recipe_file, tmp_path
):
    run_dir = tmp_path / "workers"
    chief, worker = start_workers(recipe_file, run_dir)
    wait_for_a_checkpoint(run_dir, chief, worker)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    # Does not wait for ever.
    error = chief.communicate()[1]
    assert "another worker process" in error and chief.returncode == 2, error
    assert not (run_dir / "run.json").exists()
    processes = start_workers(recipe_file, run_dir)
    for process in processes:
        finish(process)
    whole, workers = (checkpoint(run, 6) for run in (whole_run, run_dir))
    assert whole.keys() == workers.keys()
    for name in whole:
        np.testing.assert_allclose(whole[name], workers[name], atol=1e-6)
    assert bleu_of(run_dir) == bleu_of(whole_run)
