"""Copies pipes to temporary files, so that they can be read several times."""

import shutil
import stat
import tempfile
import weakref
from pathlib import Path

from keras_deepnmt.errors import UserError

_COPIES: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class PipeCopy:
    """A temporary file with the whole content of a pipe.

    It is in the system's folder of temporary files (`TMPDIR`), and is removed
    with this object.

    Example:
    >>> PipeCopy(Path("/dev/null")).path.read_bytes()
    b''
    """

    def __init__(self, pipe: Path):
        self._file = tempfile.NamedTemporaryFile(prefix="deepnmt-pipe-")
        self.path = Path(self._file.name)
        with open(pipe, "rb") as content:
            try:
                shutil.copyfileobj(content, self._file)
                self._file.flush()
            except OSError as error:
                raise UserError(
                    f"{pipe}: cannot be copied to {self.path.parent} "
                    f"({error.strerror}). Set TMPDIR to a folder with more "
                    "space, or give a file."
                ) from error


def copy_of_pipe(path: Path) -> PipeCopy | None:
    """Copies a pipe to a temporary file; returns `None` for other files.

    A pipe can be read only once, so all callers get the same copy, as long as
    one of them keeps it.

    Example:
    >>> written = Path("train.de").write_text("ein Hund")
    >>> copy_of_pipe(Path("train.de")) is None
    True
    """
    status = path.stat()
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return None
    key = (str(path), status.st_dev, status.st_ino)
    copy = _COPIES.get(key)
    if copy is None:
        copy = _COPIES[key] = PipeCopy(path)
    return copy
