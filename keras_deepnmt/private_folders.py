"""Folders whose files are run later, so that no other user may write there."""

import os
import stat
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> None:
    """Makes a folder that only this user can enter, if there is none.

    Folders above it that are missing are made as usual.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def why_not_private(folder: Path) -> str | None:
    """Returns why another user may have written into a folder, with a remedy.

    It is `None` if only this user can, or there is no such folder.
    """
    if not hasattr(os, "geteuid") or not folder.exists():  # on Windows
        return None
    status = os.stat(folder)
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to another user."
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return (
            f"other users can write to {folder}. Delete it: a new one is "
            "private."
        )
    return None


def is_own_file(path: Path) -> bool:
    """Whether a path is a file of this user, and not a link to one."""
    status = os.lstat(path)
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return mine and stat.S_ISREG(status.st_mode)
