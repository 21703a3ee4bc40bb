"""Which failures are the user's, and the messages about them."""

import errno

import pytest

from keras_deepnmt.commands.terminal.failures import explain, one_line
from keras_deepnmt.errors import UserError


@pytest.mark.parametrize(
    "error, line",
    [
        (UserError("a.de, line 3: not UTF-8."), "a.de, line 3: not UTF-8."),
        (UserError("two\n  lines"), "two lines"),
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
            MemoryError(),
            "there is not enough memory. Use smaller batches (--batch-size, "
            "or training.batch_tokens in the recipe), fewer beams or a smaller "
            "model.",
        ),
        (
            UnicodeEncodeError("ascii", "Bär", 1, 2, "not in range"),
            "the encoding ascii of the output has no 'ä'. Set the environment "
            "variable PYTHONIOENCODING=utf-8.",
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
    "error",
    [ZeroDivisionError(), TypeError(), ImportError("x"), ValueError("shapes")],
)
def test_a_fault_of_the_program_is_not_the_users(error):
    assert explain(error) is None


@pytest.mark.parametrize(
    "bug, described",
    [
        (ValueError("two\n  shapes."), "ValueError: two shapes. "),
        (AssertionError(), "AssertionError. "),
    ],
)
def test_a_bug_is_called_internal_error_and_exits_with_1(
    deepnmt, monkeypatch, bug, described
):
    def fail(directory):
        print("half a result", end="")
        raise bug

    monkeypatch.setattr("keras_deepnmt.serving.verify", fail)
    done = deepnmt("verify", "served")
    assert done.code == 1
    start = f"deepnmt verify: internal error: {described}"
    assert done.err.startswith(start), done.err
    assert done.err.count("\n") == 1
    assert "DEEPNMT_TRACEBACK=1" in done.err
    assert "`deepnmt doctor`" in done.err
    monkeypatch.setenv("DEEPNMT_TRACEBACK", "1")
    with pytest.raises(type(bug)):
        deepnmt("verify", "served")


def test_a_page_is_cut():
    assert len(one_line("word " * 1000)) < 700


def test_traceback_on_demand(deepnmt, monkeypatch):
    monkeypatch.setenv("DEEPNMT_TRACEBACK", "1")
    with pytest.raises(UserError, match="unknown option"):
        deepnmt("translate", "run", "--num-beam", "3")
