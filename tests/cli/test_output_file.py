"""What must be true of a file that a command writes its results to."""

import pytest

from keras_deepnmt.commands.terminal.output_file import open_output
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
