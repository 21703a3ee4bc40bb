"""Reads lines as they come, so that a pipe is answered before it ends."""

import os
import select
from collections.abc import Iterator

from keras_deepnmt.errors import UserError

_BLOCK = 1 << 16


def stream_lines(descriptor: int, size: int) -> Iterator[list[str]]:
    """Yields the lines of a stream in groups.

    A group is full, or holds what has come so far when the writer pauses:
    a file is read in large groups, a person at a terminal gets every answer.

    Args:
        descriptor: file descriptor to read from.
        size: the most lines in one group.

    Yields:
        Groups of lines without their line ends.

    Raises:
        UserError: on the first line that is not UTF-8, after the lines before
            it were yielded.

    Example:
    >>> with open("test.en") as file:
    ...     groups = list(stream_lines(file.fileno(), 64))
    """
    rest, waiting, number = b"", [], 0
    while block := os.read(descriptor, _BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        waiting += lines
        while len(waiting) >= size or (waiting and not _is_ready(descriptor)):
            yield from _decode(waiting[:size], number)
            number += len(waiting[:size])
            waiting = waiting[size:]
    if rest:
        waiting.append(rest)
    while waiting:
        yield from _decode(waiting[:size], number)
        number += len(waiting[:size])
        waiting = waiting[size:]


def _is_ready(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _decode(lines: list[bytes], before: int) -> Iterator[list[str]]:
    decoded = []
    for number, line in enumerate(lines, start=before + 1):
        try:
            decoded.append(_decode_line(line, number))
        except UserError:
            if decoded:
                yield decoded
            raise
    yield decoded


def _decode_line(line: bytes, number: int) -> str:
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"standard input, line {number}: not UTF-8 (byte {error.start + 1} "
            f"of the line is 0x{line[error.start]:02x})."
        ) from error
