"""Text from files, for terminals and messages."""

import re
import sys
from collections.abc import Iterable, Sequence

# Control characters other than tab and newline, halves of characters, which no
# encoding has, and what reverses the direction of the text that follows.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


def escape_controls(text: str) -> str:
    """Writes characters that a terminal would obey as escapes of Python.

    Tabs and newlines stay.
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def print_line(text: str) -> None:
    """Prints a message to standard error at once, without control characters.

    A message may have the names of a file or a recipe, which a stranger chose.
    """
    print(escape_controls(text), file=sys.stderr, flush=True)


def table_text(tables: Iterable[Sequence[Sequence[str]]]) -> str:
    """Returns tables: tabs between cells, and an empty line between tables."""
    return "\n\n".join(
        "\n".join("\t".join(map(_cell, row)) for row in table)
        for table in tables
    )


def _cell(text):
    text = text.replace("\t", r"\t").replace("\n", r"\n")
    return escape_controls(text)
