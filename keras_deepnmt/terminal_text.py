"""Text from files, for terminals and messages."""

import re

# Control characters other than tab and newline, halves of characters, which no
# encoding has, and what reverses the direction of the text that follows.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


def escape_controls(text: str) -> str:
    r"""Writes characters that a terminal would obey as escapes of Python.

    Tabs and newlines stay.

    Example:
    >>> print(escape_controls("a red \x1b[31mdog"))
    a red \x1b[31mdog
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)
