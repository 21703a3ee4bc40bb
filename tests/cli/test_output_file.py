"""What must be true of a file that a command writes its results to."""

import os

import pytest

from keras_deepnmt.commands.options.output_file import open_output
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
