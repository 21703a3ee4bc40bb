"""Which failures are a user's, and how they read."""

import errno

import pytest

from keras_deepnmt.commands.terminal.failures import explain, one_line
from keras_deepnmt.errors import UserError


@pytest.mark.parametrize(
    "error, line",
    [
        (UserError("a.de, line 3: not UTF-8."), "a.de, line 3: not UTF-8."),
        (ValueError("two\n  lines"), "two lines"),
        (
            OSError(errno.ENOSPC, "No space left on device", "out/x"),
            "out/x: No space left on device. Free some space and run the same "
            "command again.",
        ),
        (PermissionError(13, "no", "/x"), "/x: Permission denied."),
        (OSError("no number"), "no number"),
        (
            RuntimeError("write failed: No space left on device"),
            "write failed: No space left on device",
        ),
        (
            ModuleNotFoundError("No module named 'jax'", name="jax"),
            "needs the package jax. Install it with: pip install "
            '"keras_deepnmt[jax]"',
        ),
    ],
)
def test_a_users_mistake_is_one_line(error, line):
    assert explain(error) == line


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), TypeError(), ImportError("x")]
)
def test_a_fault_of_the_program_stays_a_traceback(error):
    assert explain(error) is None


def test_a_page_is_cut():
    assert len(one_line("word " * 1000)) < 700


def test_traceback_on_demand(deepnmt, monkeypatch):
    monkeypatch.setenv("DEEPNMT_TRACEBACK", "1")
    with pytest.raises(UserError, match="unknown option"):
        deepnmt("translate", "run", "--num-beam", "3")
