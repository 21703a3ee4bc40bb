"""A run killed with SIGKILL, wherever it was, ends bit by bit as if it had not.

The updates are drawn anew in each test run, and named when a test fails.
"""

import random
import signal
from pathlib import Path

import numpy as np
import pytest
from broken_runs import checkpoint, translate_by_weights
from digit_run import environment
from forked_processes import run_forked

from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough(each_commit=True)


@pytest.fixture(scope="module", autouse=True)
def cheap_updates():
    """None: processes are compared with this one."""


FIRST, SECOND = sorted(random.SystemRandom().sample(range(1, 6), 2))


@pytest.fixture(scope="module")
def whole(recipe_file, prepared_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", translate_by_weights)
        train(recipe_file, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


def killed(recipe_file, run_dir, prepared_dir, moment, number):
    program = Path(__file__).with_name("killed_process.py")
    words = (recipe_file, run_dir, prepared_dir, moment, number, "spared")
    done = run_forked([program, *words], env=environment(), timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


def test_killed_wherever_it_was_a_run_ends_as_if_it_had_not_been(
    whole, recipe_file, prepared_dir, without_search, tmp_path
):
    run_dir = tmp_path / "run"
    store = RunFolder(run_dir).checkpoints()
    for moment, number in (
        ("update", FIRST),
        # After a checkpoint of an earlier start there is one to fall back on.
        ("checkpoint", 1),
        ("update", SECOND),
    ):
        before = store.steps()
        killed(recipe_file, run_dir, prepared_dir, moment, number)
        assert not (run_dir / "run.json").exists(), f"{FIRST}, {SECOND}"
        if moment == "checkpoint":
            # Half-written files are ignored: a checkpoint's, or those of the
            # best model.
            assert store.steps() == before
            assert list(store.directory.glob(".*.partial"))
    train(recipe_file, run_dir, prepared_dir=prepared_dir, quiet=True)
    expected, received = (checkpoint(run, 6) for run in (whole, run_dir))
    assert expected.keys() == received.keys()
    for name in expected:
        np.testing.assert_array_equal(
            expected[name], received[name], err_msg=f"{name}, {FIRST}, {SECOND}"
        )
    for one, other in zip(
        RunFolder(whole).history(), RunFolder(run_dir).history(), strict=True
    ):
        assert one[0] == other[0]
        # With the tokens of the updates before the kill.
        for name in ("val_loss", "val_bleu", "tokens"):
            assert one[1][name] == other[1][name]
        assert one[1]["loss"] == pytest.approx(other[1]["loss"], rel=1e-5)
