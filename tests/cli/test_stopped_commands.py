"""SIGTERM ends any command as Ctrl-C does, with all that it started.

Of training and translating, see test_processes.py and test_resumption.py.
"""

import os
import signal

import pytest

from keras_deepnmt import cli
from keras_deepnmt.serving import verification

# Stands in for the program that checks an export; stops the command.
CHECK = """
import os, signal, sys, time
with open("{folder}/process", "w") as file:
    file.write(str(os.getpid()))
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


@pytest.mark.thorough
def test_a_stopped_export_leaves_neither_files_nor_a_process(
    deepnmt, digits, tmp_path, monkeypatch
):
    script = tmp_path / "check.py"
    script.write_text(CHECK.format(folder=tmp_path))
    monkeypatch.setattr(verification, "SCRIPT", script)
    done = deepnmt("export", digits / "run", tmp_path / "served" / "demo")
    assert done.code == 143 and done.out == ""
    assert done.err == (
        "deepnmt export: interrupted. Nothing was written; run the same "
        "command again.\n"
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "process").read_text()), 0)
    assert {file.name for file in tmp_path.iterdir()} == {"check.py", "process"}


def test_a_command_may_be_stopped_before_its_options_are_read(
    deepnmt, monkeypatch
):
    monkeypatch.setattr(
        cli, "make_parser", lambda verb: os.kill(os.getpid(), signal.SIGTERM)
    )
    done = deepnmt("models")
    assert done.code == 143
    assert done.err == "deepnmt models: interrupted. Nothing was changed.\n"
