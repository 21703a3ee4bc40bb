"""Reads sources with their translations, a window at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from keras_deepnmt.commands.terminal.input_lines import (
    STANDARD_INPUT,
    standard_input,
    stream_lines,
    windows_of,
)
from keras_deepnmt.data.compression import is_empty
from keras_deepnmt.data.corpora import LineReader, aligned_lines
from keras_deepnmt.errors import UserError

_TAB = b"\t"


@dataclass(frozen=True)
class Pair:
    """A source and its translation, a text or the ids of its tokens.

    `fault` is the reason why the pair cannot be used, or `None`.
    """

    source: str
    target: str | list[int]
    fault: str | None = None


def read_pairs(
    source: str | None, target: str | None, batch_size: int
) -> Iterator[list[Pair]]:
    """Yields pairs from two files, or from standard input, in windows.

    The windows of standard input are those of `input_lines.stream_lines`, and
    the windows of two files those of `windows_of`. Each of `source` and
    `target` is the path of a file, plain or compressed, or `-` for standard
    input. Both are `None` if each line of standard input is a source, a tab and
    its translation. The pairs before an error are yielded first.
    """
    if source is None:
        for lines in stream_lines(standard_input(), batch_size):
            yield [_split(line) for line in lines]
        return
    if "-" in (source, target):
        windows = _windows_with_standard_input(source, target, batch_size)
    elif is_empty(source) and is_empty(target):
        return
    else:
        sides = LineReader(source), LineReader(target)
        windows = windows_of(aligned_lines(*sides), batch_size)
    for window in windows:
        yield [_decode(*pair) for pair in window]


def check_sides(source: str | None, target: str | None) -> None:
    """Refuses one side without the other, and standard input for both."""
    if (source is None) != (target is None):
        missing = "--target" if target is None else "--source"
        raise UserError(
            f"needs {missing} too, or neither --source nor --target to read "
            "lines of a source, a tab and its translation from standard input."
        )
    if source == target == "-":
        raise UserError(
            "only one of `--source` and `--target` can be -, standard input. "
            "Leave both out to read lines of a source, a tab and its "
            "translation."
        )


def _windows_with_standard_input(source, target, batch_size):
    is_source = source == "-"
    file = Path(target if is_source else source)
    others = iter(()) if is_empty(file) else iter(LineReader(file))
    number = 0
    for lines in stream_lines(standard_input(), batch_size):
        beside = list(islice(others, len(lines)))
        sides = (lines, beside) if is_source else (beside, lines)
        yield list(zip(*sides, strict=False))
        number += len(beside)
        if len(beside) < len(lines):
            raise _unequal(file, f"{number} lines, {STANDARD_INPUT} with more")
    if next(others, None) is not None:
        raise _unequal(
            file, f"more lines than {STANDARD_INPUT}, which has {number}"
        )


def _unequal(file, received):
    return UserError(
        "The two sides must have the same number of lines. Received: "
        f"{file} with {received}."
    )


def _split(line):
    if line.count(_TAB) != 1:
        return Pair(
            "", "", "not a source, a tab and its translation; not scored."
        )
    return _decode(*line.split(_TAB))


def _decode(source, target):
    try:
        return Pair(source.decode("utf-8"), target.decode("utf-8"))
    except UnicodeDecodeError:
        return Pair("", "", "not UTF-8; not scored.")
