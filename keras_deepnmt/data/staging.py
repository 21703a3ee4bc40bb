"""A folder that appears under its name only when it is complete."""

import errno
import fcntl
import os
import shutil
from pathlib import Path

from keras_deepnmt.errors import UserError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StagedFolder:
    """Collects files in `NAME.partial-PID` and renames the folder at the end.

    The staging folder is locked while its process lives. The next run removes
    the staging folder of a killed run; while another run is still writing, a
    second one raises a `UserError`. So does a full disk, on exit.

    `output_dir` may exist if it is empty, or if `replace` is true; it is then
    replaced at the very end.

    Example:
    >>> with StagedFolder("prepared") as folder:
    ...     written = (folder / "hello.txt").write_text("hello")
    >>> Path("prepared/hello.txt").read_text()
    'hello'
    """

    def __init__(self, output_dir: str | Path, replace: bool = False):
        self.output_dir = Path(os.path.abspath(output_dir))
        self.replace = replace
        self.folder = self._beside("partial", os.getpid())
        self._lock = None

    def __enter__(self) -> Path:
        try:
            self.output_dir.parent.mkdir(parents=True, exist_ok=True)
            for folder in self._leftovers():
                self._remove_dead(folder)
            self.folder.mkdir()
        except OSError as error:
            raise UserError(
                f"{self.output_dir}: cannot be written here ({error.strerror}: "
                f"{error.filename})."
            ) from error
        self._lock = _lock(self.folder)
        return self.folder

    def __exit__(self, error_type, error, traceback):
        try:
            if error_type is None:
                self._publish()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            raise UserError(
                f"{self.output_dir}: could not be written "
                f"({error.strerror}); nothing was kept. Free some space, or "
                "choose another disk, and run again."
            ) from error

    def _publish(self):
        replaced = None
        if self.replace and self.output_dir.exists():
            replaced = self._beside("replaced", os.getpid())
            os.rename(self.output_dir, replaced)
        os.rename(self.folder, self.output_dir)
        if replaced is not None:
            shutil.rmtree(replaced, ignore_errors=True)

    def _beside(self, kind: str, number) -> Path:
        return self.output_dir.with_name(
            f"{self.output_dir.name}.{kind}-{number}"
        )

    def _leftovers(self) -> list[Path]:
        prefix = self._beside("partial", "").name
        return [
            folder
            for folder in self.output_dir.parent.iterdir()
            if folder.name.startswith(prefix)
            and folder.name.removeprefix(prefix).isdigit()
        ]

    def _remove_dead(self, folder: Path):
        lock = _lock(folder)
        if lock is None:
            raise UserError(
                f"{self.output_dir}: another process is writing it (in "
                f"{folder.name}). Wait for it, or choose another folder."
            )
        shutil.rmtree(folder)
        os.close(lock)


def _lock(folder: Path) -> int | None:
    # The lock is released when its process ends, for whatever reason.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
