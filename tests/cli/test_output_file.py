"""What must be true of a file that a command writes its results to."""

import os

import pytest

from keras_deepnmt.commands.options.output_file import is_device, open_output
from keras_deepnmt.errors import Terminated


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Terminated])
def test_a_stopped_command_leaves_the_file_and_tells_how_it_was_stopped(
    tmp_path, stop
):
    """The exit codes of Ctrl-C and SIGTERM differ."""
    file = tmp_path / "out.en"
    file.write_text("before\n")
    with (
        pytest.raises(stop, match="was not written") as info,
        open_output(str(file)) as output,
    ):
        output.write("new\n")
        raise stop
    assert info.type is stop
    assert file.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_of_the_shell_is_written_to():
    """As of `>(gzip > out.gz)`; its name resolves to no file."""
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as pipe:
        with open_output(f"/dev/fd/{writing}") as output:
            output.write("a dog\n")
        os.close(writing)
        assert pipe.read() == "a dog\n"


def test_what_the_shell_has_opened_keeps_what_it_has(tmp_path):
    """As of `-o /dev/stdout >> all.txt`, whose name resolves to the file."""
    file = tmp_path / "all.txt"
    file.write_text("before\n")
    for mode, expected in (("a", "before\n1\n2\n"), ("w", "1\n2\n")):
        with open(file, mode, encoding="utf-8") as opened:
            for text in "12":
                name = f"/dev/fd/{opened.fileno()}"
                with open_output(name) as output:
                    output.write(f"{text}\n")
        assert file.read_text() == expected
        assert list(tmp_path.iterdir()) == [file]


def test_open_files_are_known_by_their_names(tmp_path):
    with open(tmp_path / "all.txt", "w") as opened:
        for name in (f"/dev/fd/{opened.fileno()}", "/dev/../dev/stdout"):
            assert is_device(name)
        assert is_device(f"/proc/self/fd/{opened.fileno()}")
    assert not is_device("/dev/fd/99999999999999999999")
    assert not is_device(str(tmp_path / "all.txt"))
