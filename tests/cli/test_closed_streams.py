"""Every command does its work where nobody can read what it says.

Its exit code is the same, and an error is never printed to standard output.
"""

import os
import subprocess
import sys

import pytest
from digit_run import environment
from forked_processes import ForkedProcess

from keras_deepnmt.commands import VERBS

# As Python is where the shell has closed streams.
CLOSED = """
import os, sys
for name, number in (("stdout", 1), ("stderr", 2)):
    if name in sys.argv[1].split("+"):
        os.close(number)
        setattr(sys, name, None)
del sys.argv[1]
from keras_deepnmt.cli import main
main()
"""


def run(folder, words, closed="", gone="", **streams):
    """The exit code and the texts of a command, and of what it reads.

    Args:
        closed: the streams that are closed, with + between them.
        gone: those whose reader has ended.
    """
    names = ("stdout", "stderr")
    given = {name: subprocess.PIPE for name in names} | streams
    readers = []
    for name in filter(None, gone.split("+")):
        reading, writing = os.pipe()
        os.close(reading)
        readers.append(open(writing, "w"))
        given[name] = readers[-1]
    start = ["-c", CLOSED, closed, *words]
    process = ForkedProcess(start, cwd=folder, env=environment(), **given)
    for reader in readers:
        reader.close()
    out, err = process.communicate()
    return process.returncode, out or "", err or ""


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_its_exit_code(verb, tmp_path):
    assert run(tmp_path, [verb, "--help"], closed="stdout") == (0, "", "")
    wrong = [verb, "--no-such-option"]
    assert run(tmp_path, wrong, closed="stderr") == (2, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code"), [(["--version"], 0), (["models"], 0), ([], 2)]
)
@pytest.mark.parametrize("streams", ["stdout", "stdout+stderr"])
def test_nobody_need_read_a_table(words, code, streams, tmp_path):
    assert run(tmp_path, words, gone=streams)[::2] == (code, "")
    assert run(tmp_path, words, closed=streams)[::2] == (code, "")


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["closed", "gone"])
def test_translations_are_written_where_nobody_reads_messages(
    way, digits, tmp_path
):
    (tmp_path / "in").write_bytes(b"1 2 3 4\n\xff\n")
    words = ["translate", digits / "run", "--num-beams", "1", "--no-compile"]
    words += ["--errors", "skip", "--input", "in"]
    code, out, _ = run(tmp_path, words, **{way: "stderr"})
    assert (code, out) == (0, "4 3 2 1\n\n")
    code, *_ = run(
        tmp_path, [*words, "--output", "out"], **{way: "stdout+stderr"}
    )
    assert code == 0 and (tmp_path / "out").read_text() == "4 3 2 1\n\n"


def test_a_message_is_not_written_into_a_file_of_the_command(digits, tmp_path):
    (tmp_path / "in").write_text("1 2 3\n")
    # Two files that it opens have the lowest free numbers.
    words = ["translate", digits / "run", "--input", "in", "--output", "out"]
    words += ["--num-beams", "1", "--no-compile", "--checkpoint", "7"]
    code, out, err = run(tmp_path, words, closed="stdout+stderr")
    assert (code, out, err) == (2, "", "")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "in"]


def test_a_full_disk_is_told_where_it_can_be(tmp_path):
    with open("/dev/full", "w") as full:
        code, _, err = run(tmp_path, ["models"], stdout=full)
        assert code == 2 and "No space left" in err
        # Messages do not matter.
        code, out, _ = run(tmp_path, ["models"], stderr=full)
        assert code == 0 and "transformer_tiny" in out


@pytest.mark.thorough
def test_training_and_evaluation_end_where_nobody_reads(digits, tmp_path):
    words = ["train", digits / "digits.yaml", "--run-dir", "run"]
    words += ["--prepared", digits / "prepared", "--set", "training.steps=2"]
    words += ["training.jit_compile=false", "training.validate_every=2"]
    assert run(tmp_path, words, gone="stdout+stderr")[0] == 0
    assert (tmp_path / "run" / "run.json").is_file()
    words = ["evaluate", "run", "--no-compile", "--num-beams", "1"]
    assert run(tmp_path, words, closed="stdout+stderr")[0] == 0
    assert (tmp_path / "run" / "scores.json").is_file()


def test_a_shell_closes_the_streams(tmp_path):
    command = f"{sys.executable} -m keras_deepnmt"
    script = f"{command} --version >&-; echo $?; {command} no-command 2>&-"
    done = subprocess.run(
        ["sh", "-c", f"{script}; echo $?"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("0\n2\n", "")
