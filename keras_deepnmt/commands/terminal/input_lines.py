"""Reads lines from a stream or a file, and yields them before the end."""

import itertools
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from keras_deepnmt.commands.terminal.line_faults import NOT_UTF8
from keras_deepnmt.commands.terminal.line_warnings import LineWarnings
from keras_deepnmt.data.compression import is_empty
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.errors import UserError

T = TypeVar("T")

STANDARD_INPUT = "standard input"
_BLOCK = 1 << 16
# Sentences of similar length are batched together: a larger window means less
# padding and fewer batch shapes, but later results. So the first window of what
# somebody or another program writes is one batch.
_BATCHES_PER_WINDOW = 16
# Of a file, whose results nobody waits for one by one.
_BATCHES_OF_FILE = 64
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_windows(path: str | None, batch_size: int) -> Iterator[list[bytes]]:
    """Yields the lines of a file, or of standard input, a window at a time.

    `path` is `None` or `-` for standard input. A window of a file has 64
    batches of lines. Of other input, the first window has at most `batch_size`
    lines; each full window is followed by one of twice its size, up to 16
    batches.
    """
    if path in (None, "-"):
        yield from stream_lines(standard_input(), batch_size)
    elif is_text_file(path):
        yield from _whole_windows(LineReader(path), batch_size)
    elif not is_empty(path):
        # A named pipe, whose lines come one by one.
        with open(path, "rb") as file:
            yield from stream_lines(file.fileno(), batch_size)


def count_lines(path: str | None) -> int | None:
    """Returns how many lines a text file has; `None` of other input."""
    if path in (None, "-") or not is_text_file(path):
        return None
    return sum(1 for _ in LineReader(path))


def standard_input() -> int:
    """Returns the descriptor of standard input; refuses a closed one."""
    if sys.stdin is None:
        raise UserError(
            "standard input is closed. Give a file, or redirect standard input."
        )
    return sys.stdin.fileno()


def is_typed() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def windows_of(items: Iterable[T], batch_size: int) -> Iterator[list[T]]:
    """Divides items into windows: a batch, and twice as many each time.

    From 16 batches on they stay as large.
    """
    items, size = iter(items), batch_size
    while window := list(itertools.islice(items, size)):
        yield window
        size = _next_size(size, batch_size)


def stream_lines(descriptor: int, batch_size: int) -> Iterator[list[bytes]]:
    """Yields the lines of a file descriptor a window at a time.

    If no more input is available yet, the lines read so far are yielded as a
    smaller window. A file is thus read in full windows, and lines that are
    typed at a terminal are yielded at once. A byte order mark before the first
    line is dropped.
    """
    incomplete_line, pending, size = b"", [], batch_size
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        size *= _BATCHES_OF_FILE
    is_first = True
    while block := os.read(descriptor, _BLOCK):
        *lines, incomplete_line = (incomplete_line + block).split(b"\n")
        if lines and is_first:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
            is_first = False
        pending += [line.removesuffix(b"\r") for line in lines]
        while len(pending) >= size or (pending and not _is_ready(descriptor)):
            window, pending = pending[:size], pending[size:]
            yield window
            if len(window) == size:
                size = _next_size(size, batch_size)
    if is_first:
        incomplete_line = incomplete_line.removeprefix(_BYTE_ORDER_MARK)
    if incomplete_line:
        pending.append(incomplete_line.removesuffix(b"\r"))
    while pending:
        window, pending = pending[:size], pending[size:]
        yield window
        size = _next_size(size, batch_size)


def decode_windows(
    windows: Iterable[list[bytes]],
    name: str,
    errors: str,
    warnings: LineWarnings,
    whole_windows: bool = False,
) -> Iterator[list[str | None]]:
    """Decodes the lines of each window as UTF-8.

    For a line that is not UTF-8, `errors` is `"strict"` to raise `UserError`
    after the lines before it were yielded, `"replace"` to replace each invalid
    byte by U+FFFD, or `"skip"` for `None` instead. The last two add the line to
    `warnings`. `name` is the name of the input in an error message.
    With `whole_windows`, the lines before it in its window are not yielded.
    """
    number = 0
    for lines in windows:
        texts: list[str | None] = []
        for line in lines:
            number += 1
            try:
                texts.append(line.decode("utf-8"))
            except UnicodeDecodeError as error:
                if errors == "strict":
                    if texts and not whole_windows:
                        yield texts
                    raise UserError(_describe(error, name, number)) from error
                warnings.add(number, NOT_UTF8[errors])
                texts.append(
                    line.decode("utf-8", "replace")
                    if errors == "replace"
                    else None
                )
        yield texts


def input_name(path: str | None) -> str:
    """Returns the name of an input for messages; `None` is standard input."""
    return STANDARD_INPUT if path in (None, "-") else path


def _whole_windows(items, batch_size):
    """Divides items into windows of 64 batches."""
    items = iter(items)
    size = _BATCHES_OF_FILE * batch_size
    while window := list(itertools.islice(items, size)):
        yield window


def _next_size(size, batch_size):
    return max(size, min(2 * size, _BATCHES_PER_WINDOW * batch_size))


def is_text_file(path: str) -> bool:
    """Whether `LineReader` should read the path, or report what is wrong."""
    try:
        status = os.stat(path)
    except OSError:
        return True
    if stat.S_ISREG(status.st_mode):
        return not is_empty(path)
    return Path(path).is_dir()


def _is_ready(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _describe(error, name, number):
    return (
        f"{name}, line {number}: not UTF-8 (byte {error.start + 1} of the line "
        f"is 0x{error.object[error.start]:02x}). `--errors replace` or "
        "`--errors skip` goes on after such lines."
    )
