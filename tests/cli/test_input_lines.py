"""What must be true of lines from standard input.

A byte order mark is no part of the first line, and stays in all others.
"""

import os

from keras_deepnmt.commands.terminal.input_lines import stream_lines

MARK = b"\xef\xbb\xbf"


def read_lines(*writes, size=2):
    reading, writing = os.pipe()
    for content in writes:
        os.write(writing, content)
    os.close(writing)
    try:
        return [line for lines in stream_lines(reading, size) for line in lines]
    finally:
        os.close(reading)


def test_a_byte_order_mark_on_standard_input_is_dropped():
    assert read_lines(MARK + b"ein Hund\n", b"eine Katze\n") == [
        "ein Hund",
        "eine Katze",
    ]
    assert read_lines(MARK) == [""]


def test_a_byte_order_mark_in_a_later_line_is_text():
    lines = read_lines(b"a\nb\nc\n" + MARK + b"d")
    assert lines == ["a", "b", "c", "\ufeffd"]
