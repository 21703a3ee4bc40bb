"""What must be true of a run that Ctrl-C interrupts, at any time.

* however often, the final model is the mean of as many checkpoints
* an interrupted validation is made again, also that of a short last epoch
* on JAX also in the first update, whose weights are then lost
* files that a killed process left half written are deleted
* half of a row of the log is not read
"""

import shutil
from pathlib import Path

import pytest
from broken_runs import interrupt_after, interrupt_validation
from digit_run import environment
from forked_processes import run_forked

from keras_deepnmt.errors import UserError
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training import weight_average

THREE = {
    "training.steps": 9,
    "training.checkpoint_every": 3,
    "training.validate_every": 9,
}


@pytest.fixture(autouse=True)
def no_search(without_search):
    """No result here depends on a translation."""


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "run")


def validated_steps(run):
    return [logs["step"] for _, logs in run.history()]


@pytest.mark.thorough
def test_interrupts_cost_no_checkpoint_of_the_average(
    train_in, run, monkeypatch
):
    for step, steps in ((7, [3, 6, 7]), (8, [3, 6, 8])):
        with monkeypatch.context() as patch:
            interrupt_after(patch, step)
            with pytest.raises(KeyboardInterrupt, match=f"step {step} is"):
                train_in(THREE)
        assert run.checkpoints().steps() == steps
    assert train_in(THREE)["averaged_steps"] == [6, 9]


@pytest.mark.thorough
def test_a_checkpoint_that_is_due_is_none_of_an_interrupt(
    train_in, run, monkeypatch
):
    # Before the checkpoint of this update is saved.
    interrupt_after(monkeypatch, 6)
    with pytest.raises(KeyboardInterrupt):
        train_in(THREE)
    assert train_in(THREE)["averaged_steps"] == [6, 9]


@pytest.mark.thorough
def test_an_extended_run_keeps_the_checkpoints_that_it_has(train_in):
    assert train_in(THREE)["averaged_steps"] == [6, 9]
    longer = train_in({**THREE, "training.steps": 10})
    assert longer["averaged_steps"] == [9, 10]


@pytest.mark.thorough
def test_the_validation_of_a_short_last_epoch_is_made_up_for(
    train_in, run, monkeypatch
):
    changes = {"training.steps": 4}
    interrupt_validation(monkeypatch, 4)
    with pytest.raises(KeyboardInterrupt):
        train_in(changes)
    assert validated_steps(run) == [3]
    train_in(changes)
    assert run.history()[-1][0] == 1
    assert validated_steps(run) == [3, 4]
    # An epoch of the same number, when the run goes on.
    interrupt_validation(monkeypatch, 6)
    with pytest.raises(KeyboardInterrupt):
        train_in()
    assert validated_steps(run) == [3, 4]
    train_in()
    assert validated_steps(run) == [3, 4, 6]


@pytest.mark.thorough
def test_a_validation_that_begins_leaves_the_trained_weights(
    train_in, run, tmp_path, monkeypatch
):
    changes = {
        "training.optimizer.average_momentum": 0.5,
        "training.average_checkpoints": 1,
    }
    assign, interrupts = weight_average._assign, [KeyboardInterrupt()]

    def assign_half(model, values):
        if len(values) and interrupts:
            model.trainable_variables[0].assign(values[0])
            raise interrupts.pop()
        assign(model, values)

    monkeypatch.setattr(weight_average, "_assign", assign_half)
    with pytest.raises(KeyboardInterrupt):
        train_in(changes)
    interrupted = train_in(changes)
    run.directory.rename(tmp_path / "interrupted")
    assert interrupted["weights_sha256"] == train_in(changes)["weights_sha256"]


@pytest.mark.thorough
def test_what_a_killed_process_left_goes_when_training_goes_on(train_in, run):
    train_in({"training.steps": 3})
    folder = run.directory / "checkpoints"
    half = folder / ".step-00000009.0123456789abcdef.partial"
    shutil.copytree(folder / "step-00000002", half / "step-00000009")
    train_in()
    names = {path.name for path in folder.iterdir()}
    kept = {f"step-0000000{step}" for step in (4, 5, 6)}
    assert kept == {name for name in names if "best" not in name}


@pytest.mark.parametrize(
    "content", [b"epoch\n\x82", b'epoch\n"' + b"a" * 2**18]
)
def test_a_damaged_log_is_named(run, content):
    run.directory.mkdir()
    run.log_file.write_bytes(content)
    with pytest.raises(UserError, match="log.csv: damaged"):
        run.history()


@pytest.mark.parametrize("half", ["1", "1,4.0", "1,4.0,", "1,4.0,3"])
def test_half_a_row_of_the_log_is_not_read(run, half):
    run.directory.mkdir()
    rows = "epoch,loss,step,val_loss\n0,5.0,30,4.5\n"
    run.log_file.write_text(rows + half)
    # Half of "30" is a smaller number.
    run.truncate_log(30)
    assert validated_steps(run) == [30]
    run.truncate_log(20)
    assert not run.log_file.exists()


def test_a_log_with_half_a_header_has_no_rows(run):
    run.directory.mkdir()
    run.log_file.write_text("epoch,lo\n0,5.0\n")
    run.truncate_log(30)
    assert run.history() == []


# `deepnmt` with a step that Ctrl-C interrupts while it is compiled.
INTERRUPTED = """
import sys
from keras_deepnmt.models.training_step.stateless_step import StatelessStep

def interrupted(*arguments):
    raise KeyboardInterrupt

StatelessStep.train_step = interrupted
sys.argv = ["deepnmt", *sys.argv[1:]]
from keras_deepnmt.cli import main
sys.exit(main())
"""


# Slow: four processes on JAX; interrupts of all other moments are above.
@pytest.mark.slow
def test_an_interrupt_of_the_first_update_on_jax_is_told_as_elsewhere(
    recipe_file, tmp_path
):
    def train(steps, *start):
        words = ["train", recipe_file, "--run-dir", tmp_path / "run"]
        words += ["--quiet", "--set", f"training.steps={steps}"]
        return run_forked(
            [*start, *words], env=environment(KERAS_BACKEND="jax")
        )

    for steps, saved in ((2, "no checkpoint was saved yet"), (4, "step 2 is")):
        process = train(steps, "-c", INTERRUPTED)
        assert process.returncode == 130, process.stderr
        assert saved in process.stderr
        assert "bug" not in process.stderr
        process = train(steps, Path(__file__).with_name("without_search.py"))
        assert process.returncode == 0, process.stderr
