"""Reads lines as they come, so that a pipe is answered before it ends."""

import codecs
import os
import select
from collections.abc import Iterator
from pathlib import Path

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


def read_pairs(source: str, target: str) -> tuple[list[str], list[str]]:
    """Reads the two sides of a test set, which must be aligned.

    Args:
        source: file of source lines.
        target: file of target lines.

    Returns:
        The source and the target lines.

    Raises:
        UserError: if a file is empty or not UTF-8, or their lengths differ.

    Example:
    >>> sources, targets = read_pairs("test.en", "test.de")
    """
    sides = [_read_lines(source), _read_lines(target)]
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            "The two sides must have the same number of lines. Received: "
            f"{source} with {len(sides[0])} and {target} with {len(sides[1])} "
            "lines."
        )
    return sides[0], sides[1]


def _read_lines(path: str) -> list[str]:
    lines = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise UserError(f"{path}: the file is empty.")
    return [
        _decode_line(line, path, number)
        for number, line in enumerate(lines, start=1)
    ]


def _is_ready(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _decode(lines: list[bytes], before: int) -> Iterator[list[str]]:
    decoded = []
    for number, line in enumerate(lines, start=before + 1):
        try:
            decoded.append(_decode_line(line, "standard input", number))
        except UserError:
            if decoded:
                yield decoded
            raise
    yield decoded


def _decode_line(line: bytes, place: str, number: int) -> str:
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{place}, line {number}: not UTF-8 (byte {error.start + 1} of the "
            f"line is 0x{line[error.start]:02x})."
        ) from error
