"""Ctrl-C, full disks and closed pipes, each in a real process."""

import re
import signal
import subprocess
import sys
import time

import pytest
from digit_run import deepnmt_process, environment, write_digits
from forked_processes import ForkedProcess

TEXT = ["--source", "train.source", "--target", "train.target"]
SMALL = ["--vocabulary-size", "25", "--drop-identical", "false"]


def start(*words, folder, **options):
    return ForkedProcess(
        ["-m", "keras_deepnmt", *words],
        cwd=folder,
        env=environment(),
        stderr=subprocess.PIPE,
        **options,
    )


def wait_for(process, condition, seconds=200):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_interrupted_prepare_leaves_nothing(tmp_path):
    write_digits(tmp_path, "train", 50_000, seed=0)
    for name in ("train.source", "train.target"):
        # Half a minute of work: it cannot end before the signal comes.
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text * 30)
    before = sorted(tmp_path.iterdir())
    words = ["prepare", "--quiet", *TEXT, *SMALL, "--output", "prepared"]
    process = start(*words, folder=tmp_path)
    wait_for(process, lambda: sorted(tmp_path.iterdir()) != before)
    process.send_signal(signal.SIGINT)
    error = process.communicate()[1]
    assert process.returncode == 130
    assert error.count("\n") == 1, error
    assert "same command" in error
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.thorough),
        # Slow: Ctrl-C ends other real processes in this file, and training in
        # the process of the tests in tests/runs/test_interrupted_runs.py.
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_interrupted_training_continues(digits, tmp_path, number, code):
    words = [
        *("train", digits / "digits.yaml", "--prepared", digits / "prepared"),
        *("--run-dir", "run", "--quiet", "--set", "training.steps=40"),
        *("training.checkpoint_every=10", "training.validate_every=40"),
        *("training.jit_compile=false", "decoding.num_beams=1"),
    ]
    process = start(*words, folder=tmp_path, stdout=subprocess.DEVNULL)
    checkpoints = tmp_path / "run" / "checkpoints"
    wait_for(process, lambda: any(checkpoints.glob("step-*")))
    process.send_signal(number)
    error = process.communicate()[1]
    assert process.returncode == code
    assert error.count("\n") == 1 and "ame command" in error, error
    assert "checkpoint of step" in error
    assert not (tmp_path / "run" / "run.json").exists()
    done = deepnmt_process(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "run\n"
    assert (tmp_path / "run" / "run.json").is_file()


def test_full_disk_while_preparing(tmp_path):
    write_digits(tmp_path, "train", 20_000, seed=0)
    before = sorted(tmp_path.iterdir())
    words = ["prepare", "--quiet", *TEXT, *SMALL, "--output", "prepared"]
    process = start(*words, folder=tmp_path, file_size_limit=100_000)
    error = process.communicate()[1]
    assert process.returncode == 2, error
    assert error.count("\n") == 1, error
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.thorough
def test_full_disk_while_training(digits, tmp_path):
    words = [
        *("train", digits / "digits.yaml", "--prepared", digits / "prepared"),
        *("--run-dir", "run", "--quiet", "--set", "training.steps=2"),
        "training.jit_compile=false",
    ]
    process = start(*words, folder=tmp_path, file_size_limit=400_000)
    error = process.communicate()[1]
    assert process.returncode == 2, error
    assert error.count("\n") == 1, error
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


@pytest.mark.thorough
def test_full_disk_while_exporting(digits, tmp_path):
    words = ["export", digits / "run", "served/demo"]
    process = start(*words, folder=tmp_path, file_size_limit=100_000)
    error = process.communicate()[1]
    assert process.returncode == 2, error
    assert error.count("\n") == 1, error
    assert "Free some space" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough(each_commit=True)
def test_a_reader_that_goes_away_is_no_error(digits, tmp_path):
    (tmp_path / "many").write_text("1 2 3\n" * 2000)
    words = ["translate", digits / "run", "--num-beams", "1"]
    with open(tmp_path / "many") as many:
        process = start(
            *words, folder=tmp_path, stdin=many, stdout=subprocess.PIPE
        )
    process.stdout.readline()
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait() in (0, 141)


def test_an_overview_that_cannot_be_printed_has_no_traceback(tmp_path):
    with start("--help", folder=tmp_path, stdout=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (0, 141)
    with (
        open("/dev/full", "w") as full,
        start("--help", folder=tmp_path, stdout=full) as process,
    ):
        assert process.stderr.read().startswith(
            "deepnmt: error: No space left on device."
        )
    assert process.returncode == 2


def test_results_that_cannot_be_written(tmp_path):
    with open("/dev/full", "w") as full:
        process = start("models", folder=tmp_path, stdout=full)
    error = process.communicate()[1]
    assert process.returncode == 2
    assert error.startswith("deepnmt models: error: No space left")
    assert error.count("\n") == 1


@pytest.mark.thorough
def test_the_imports_own_lines_are_not_seen(tmp_path):
    # An interpreter of its own, since a fork has imported them before.
    done = subprocess.run(
        [sys.executable, "-m", "keras_deepnmt", "models", "--quiet"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "transformer_tiny" in done.stdout.split("\n")
    assert done.stderr == ""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "given", "expected"),
    [
        (["translate"], "1 2 3 4\n", r"4 3 2 1"),
        (["score", "--totals"], "1 2 3 4\t4 3 2 1\n", r"\d\t5\t-\d.\d+"),
    ],
)
def test_an_interrupted_stream_keeps_what_was_printed(
    digits, tmp_path, words, given, expected
):
    verb, *more = words
    with open(tmp_path / "printed", "w") as printed:
        process = start(
            *(verb, digits / "run", "--no-compile", *more),
            folder=tmp_path,
            stdin=subprocess.PIPE,
            stdout=printed,
        )

    def lines():
        return [
            line
            for line in (tmp_path / "printed").read_text().splitlines()
            if re.fullmatch(expected, line)
        ]

    for count in (1, 2):
        # The pipe stays open.
        process.stdin.write(given)
        process.stdin.flush()
        wait_for(process, lambda count=count: len(lines()) == count)
    process.send_signal(signal.SIGINT)
    error = process.communicate()[1]
    assert process.returncode == 130
    assert error.endswith("The lines printed so far are complete.\n")
    assert len(lines()) == 2


@pytest.mark.thorough(each_commit=True)
def test_a_pipe_is_answered_line_by_line(digits, tmp_path):
    process = start(
        *("translate", digits / "run", "--num-beams", "1"),
        folder=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        for _ in range(2):
            process.stdin.write("1 2 3 4\n")
            process.stdin.flush()
            assert process.stdout.readline() == "4 3 2 1\n"
        process.stdin.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
