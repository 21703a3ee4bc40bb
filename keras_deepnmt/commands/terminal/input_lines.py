"""Reads lines from a stream and yields them before the stream ends."""

import os
import select
from collections.abc import Iterator

from keras_deepnmt.errors import UserError

_BLOCK = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def stream_lines(descriptor: int, size: int) -> Iterator[list[str]]:
    """Yields the lines of a file descriptor in groups of at most `size`.

    If no more input is available yet, the lines read so far are yielded as a
    smaller group. A file is thus read in full groups, and lines that are typed
    at a terminal are yielded at once. A byte order mark before the first line
    is dropped. A line that is not UTF-8 raises `UserError` after the lines
    before it were yielded.
    """
    incomplete_line, pending, number = b"", [], 0
    while block := os.read(descriptor, _BLOCK):
        *lines, incomplete_line = (incomplete_line + block).split(b"\n")
        pending += lines
        while len(pending) >= size or (pending and not _is_ready(descriptor)):
            yield from _decode(pending[:size], number)
            number += len(pending[:size])
            pending = pending[size:]
    if incomplete_line:
        pending.append(incomplete_line)
    while pending:
        yield from _decode(pending[:size], number)
        number += len(pending[:size])
        pending = pending[size:]


def _is_ready(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _decode(lines: list[bytes], num_before: int) -> Iterator[list[str]]:
    decoded = []
    for number, line in enumerate(lines, start=num_before + 1):
        try:
            decoded.append(_decode_line(line, number))
        except UserError:
            if decoded:
                yield decoded
            raise
    yield decoded


def _decode_line(line: bytes, number: int) -> str:
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"standard input, line {number}: not UTF-8 (byte {error.start + 1} "
            f"of the line is 0x{line[error.start]:02x})."
        ) from error
