"""Ray's processes translate files, and may be killed at any moment.

* three workers give the bytes that one gives
* no line is lost or twice when workers or the whole command are killed
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from digit_run import environment
from shard_files import OPTIONS, contents, write_shards

pytest.importorskip("ray")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    write_shards(folder)
    return folder


def words(digits, output, workers):
    return [
        *("translate-files", digits / "run", "--input", "mono/*"),
        *("--output", output, "--workers", workers, *OPTIONS),
        *("--format", "tsv", "--score"),
    ]


@pytest.fixture(scope="module")
def expected(digits, folder):
    """What one worker writes."""
    return finished(digits, folder, "one", 1)


def start(digits, folder, output, workers):
    # Not a fork: Ray has threads from its import on.
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "keras_deepnmt"),
            *map(str, words(digits, output, workers)),
        ],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def finished(digits, folder, output, workers):
    """Runs the command to its end; the content of its results."""
    process = start(digits, folder, output, workers)
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    # Ray itself prints nothing.
    lines = printed.splitlines()
    assert lines.pop() == output
    assert all(line.startswith("deepnmt: ") for line in lines), printed
    return contents(folder / output)


def worker_processes(process):
    """The processes of the workers of a command, found by their parents."""
    parents = {}
    names = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            rows = dict(
                line.split(":\t", 1)
                for line in status.read_text().splitlines()
                if ":\t" in line
            )
        except OSError:
            continue  # it has just ended
        number = int(rows["Pid"])
        parents[number], names[number] = int(rows["PPid"]), rows["Name"]

    def is_below(number):
        while number in parents and number != process.pid:
            number = parents[number]
        return number == process.pid

    return [
        number
        for number, name in names.items()
        if name.startswith("ray::_Worker") and is_below(number)
    ]


@pytest.mark.thorough
def test_three_workers_write_the_bytes_of_one(digits, folder, expected):
    assert {name: len(lines) for name, lines in expected.items()} == {
        **{"a.tsv.gz": 71, "b.tsv": 41, "c.tsv": 1, "d.tsv.gz": 34}
    }
    assert finished(digits, folder, "three", 3) == expected
    for file in (folder / "one").glob("*.tsv*"):
        assert file.read_bytes() == (folder / "three" / file.name).read_bytes()


@pytest.mark.thorough
def test_a_killed_worker_costs_no_line(digits, folder, expected):
    process = start(digits, folder, "lost", 2)
    draw = random.Random(0)
    killed = 0
    while process.poll() is None and killed < 2:
        time.sleep(draw.random())
        # At most one at a time, or none would ever finish.
        workers = worker_processes(process)
        if len(workers) == 2:
            os.kill(draw.choice(workers), signal.SIGKILL)
            killed += 1
            time.sleep(3 + draw.random())
    printed, _ = process.communicate()
    assert process.returncode == 0 and killed, printed
    assert contents(folder / "lost") == expected


@pytest.mark.thorough
def test_a_killed_command_goes_on_where_it_was(digits, folder, expected):
    process = start(digits, folder, "killed", 2)
    first = folder / "killed" / "a.tsv.gz"
    while not first.exists() and process.poll() is None:
        time.sleep(0.01)
    workers = worker_processes(process)
    process.kill()
    process.communicate()
    made = first.stat()
    before = sorted((folder / "killed").glob("*.tsv*"))
    assert finished(digits, folder, "killed", 2) == expected
    assert before and first.stat().st_mtime_ns == made.st_mtime_ns
    # Ray's processes ended with the command.
    assert not any(Path(f"/proc/{number}").exists() for number in workers)
