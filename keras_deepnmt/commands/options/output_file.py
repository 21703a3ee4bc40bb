"""Where a command writes its results: standard output or a whole file."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.files import atomic_file, writable_file

# Names of what the shell has opened for the command.
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]+)")


def add_output(parser: VerbParser) -> None:
    """Adds `--output` for a command that prints results while it runs."""
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write the results to, instead of standard output. It is "
        "written as a whole at the end: an interrupted command leaves it as it "
        "was.",
    )


@contextlib.contextmanager
def open_output(path: str | None) -> Iterator[TextIO]:
    """Opens the file of `--output`; `None` or `-` is standard output.

    A file is written under a temporary name and renamed at the end. Pipes,
    devices and what the shell has opened are written to directly. On Ctrl-C the
    `KeyboardInterrupt` has the message that the file was not written.
    """
    if path in (None, "-"):
        yield sys.stdout
        return
    if is_device(path):
        # What is open is written to at its place: by its name it would begin
        # again. The name of a shell's pipe resolves to none.
        number = _descriptor(path)
        sys.stdout.flush()  # what was printed before stays before it
        opened = path if number is None else os.dup(number)
        with open(opened, "w", encoding="utf-8") as output:
            yield output
        return
    file = writable_file(path)
    try:
        with (
            atomic_file(file) as temporary,
            open(temporary, "w", encoding="utf-8") as output,
        ):
            yield output
    except KeyboardInterrupt as stop:
        # SIGTERM keeps its exit code.
        raise type(stop)(f"interrupted. {path} was not written.") from None


def is_device(path: str) -> bool:
    """Whether there is a pipe or a device of this name.

    So are /dev/stdout and /dev/fd/N, even where the shell has redirected them
    to a file: it may have other content, which a new file would replace.
    """
    given = Path(path)
    if _descriptor(path) is not None:
        return given.exists()
    return given.exists() and not given.is_file() and not given.is_dir()


def _descriptor(path):
    """The number of an open file by its name, `None` for other names."""
    path = os.path.abspath(path)
    found = _DESCRIPTOR.fullmatch(path)
    return int(found[1]) if found else _STREAMS.get(path)
