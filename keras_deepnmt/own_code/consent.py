"""Which files of code this user has asked to run, by their hashes.

To load a run folder runs the code in it. Code that the user has named once, in
a recipe or by `--import`, may run again from any copy of the same bytes. Other
code, such as that of a folder from the internet, must be named first.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import write_text
from keras_deepnmt.own_code.code_file import CodeFile
from keras_deepnmt.private_folders import (
    is_own_file,
    make_private,
    why_not_private,
)

_in_this_process: set[str] = set()


def consent_folder() -> Path:
    """Returns the folder of this user with one file for each hash.

    It is `keras_deepnmt/allowed_code` in XDG_DATA_HOME, or in
    `~/.local/share`.
    """
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "keras_deepnmt" / "allowed_code"


def consent(codes: Iterable[CodeFile]) -> None:
    """Notes that the user has asked to run these files.

    Where the home folder cannot be written, it holds for this process alone.
    """
    for code in codes:
        _in_this_process.add(code.sha256)
        with contextlib.suppress(OSError, RuntimeError):
            file = consent_folder() / code.sha256
            if not file.is_file():
                make_private(file.parent.parent)
                make_private(file.parent)
                write_text(file, f"{code.path}\n")


def check_consent(codes: Iterable[CodeFile]) -> None:
    """Refuses code that the user has never asked to run.

    A consent counts if no other user can have noted it.
    """
    fault = None
    with contextlib.suppress(OSError, RuntimeError):
        folder = consent_folder()
        fault = why_not_private(folder.parent) or why_not_private(folder)
    for code in codes:
        if code.sha256 in _in_this_process:
            continue
        with contextlib.suppress(OSError, RuntimeError):
            file = consent_folder() / code.sha256
            if fault is None and file.is_file() and is_own_file(file):
                continue
        raise UserError(
            f"{code.entry}: needs your consent, since loading this model runs "
            "that code, which you have not run here before. Read it; then "
            f"give `--import {code.entry}`, or in Python "
            f"`keras_deepnmt.import_code({code.entry!r})`."
            + (f" Earlier consents do not count: {fault}" if fault else "")
        )
