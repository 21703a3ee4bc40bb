"""What must be true of lines from standard input.

A byte order mark is removed from the first line, and stays in all others.
"""

import os
import sys

import pytest

from keras_deepnmt.commands.terminal.input_lines import (
    is_typed,
    read_windows,
    stream_lines,
)
from keras_deepnmt.errors import UserError

MARK = b"\xef\xbb\xbf"


def read_lines(*writes, size=2):
    reading, writing = os.pipe()
    for content in writes:
        os.write(writing, content)
    os.close(writing)
    try:
        return [
            line.decode()
            for lines in stream_lines(reading, size)
            for line in lines
        ]
    finally:
        os.close(reading)


def test_a_byte_order_mark_on_standard_input_is_dropped():
    assert read_lines(MARK + b"ein Hund\n", b"eine Katze\n") == [
        "ein Hund",
        "eine Katze",
    ]
    assert read_lines(MARK) == []


def test_a_byte_order_mark_in_a_later_line_is_text():
    lines = read_lines(b"a\nb\nc\n" + MARK + b"d")
    assert lines == ["a", "b", "c", "\ufeffd"]


def test_a_closed_standard_input_is_refused(monkeypatch):
    """As in `deepnmt translate RUN <&-`."""
    monkeypatch.setattr(sys, "stdin", None)
    assert not is_typed()
    with pytest.raises(UserError, match="standard input is closed"):
        next(read_windows(None, 4))
