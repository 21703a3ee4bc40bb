"""Hashes, locks, and files and folders that are written whole or not at all."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

# The name that Keras presets and our checkpoints give to a model's weights.
WEIGHTS_FILE = "model.weights.h5"
# Makes a folder with a Keras preset a preset folder of this package.
PRESET_FILE = "translator.json"
# Numbers of the errors for a full disk, a quota and a limit on file sizes.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def file_sha256(path: str | Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal.

    Example:
    >>> size = Path("empty").write_text("")
    >>> file_sha256("empty")[:8]
    'e3b0c442'
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bytes_sha256(content: bytes) -> str:
    """Returns the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def lines_sha256(lines: Iterable[str]) -> str:
    """Returns the SHA-256 of a text file with these lines, in hexadecimal.

    Example:
    >>> lines_sha256([])[:8]
    'e3b0c442'
    """
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path, and renames that file to `path` at the end.

    The temporary file is in the same folder. It is flushed to the disk before
    the renaming, and removed if the block raises: `path` then stays as it was.

    Example:
    >>> with atomic_file("hello.txt") as temporary:
    ...     size = temporary.write_text("hello")
    >>> Path("hello.txt").read_text()
    'hello'
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Writes a file atomically, see `atomic_file`."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | Path, content: str) -> None:
    """Writes a UTF-8 text file atomically, see `atomic_file`."""
    write_bytes(path, content.encode("utf-8"))


def read_json(path: str | Path) -> Any:
    """Reads a JSON file that this package wrote.

    Raises a `UserError` if it is damaged.

    Example:
    >>> size = Path("damaged.json").write_text("{")
    >>> read_json("damaged.json")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: damaged.json: not valid JSON (Expecting...
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}).") from error


def write_json(path: str | Path, content: Any) -> None:
    """Writes a JSON file atomically, see `atomic_file`."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def lock_folder(folder: str | Path, shared: bool = False) -> int | None:
    """Locks a folder for this process.

    Args:
        folder: an existing folder.
        shared: whether other processes may have a shared lock at the same
            time. Defaults to `False`.

    Returns:
        A file descriptor: the lock lasts until it is closed or the process
        ends. `None` if another process has the lock, or has just deleted the
        folder. Where the system has no file locks (Windows) nothing is locked.
    """
    # Not by filelock: its shared locks are databases, and the lock of a folder
    # must move with the folder when it is renamed.
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        if _is_at(descriptor, folder):
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None


@contextmanager
def file_lock(path: str | Path) -> Iterator[None]:
    """Waits until no other process is in a `file_lock` block of this path.

    For reading and rewriting a file that several processes change. The lock
    ends with the block or with the process. It is held on a hidden file beside
    `path`, which is deleted at the end.

    Example:
    >>> with file_lock("counts.json"):
    ...     write_json("counts.json", {"a": 1})
    """
    # Imported here, so that files are read and written without it.
    from filelock import FileLock

    path = Path(path)
    lock = path.with_name(f".{path.name}.lock")
    with FileLock(lock, mode=0o666, poll_interval=0.01):
        try:
            yield
        finally:
            # Processes that wait for this file notice it, and lock a new one.
            with suppress(OSError):  # Windows keeps open files
                lock.unlink()


def _is_at(descriptor, path):
    """Whether a path still names the open file or folder."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def recover_folder(folder: str | Path) -> None:
    """Puts a folder back that a killed process was about to replace.

    `StagedFolder` sets the old folder aside before it renames the new one. If
    it was killed in between, the old one is the only complete copy; it gets its
    name back, unless something has that name by now.

    Raises:
        UserError: if another process is replacing the folder.

    Example:
    >>> os.mkdir("prepared.replaced-17")
    >>> recover_folder("prepared")
    >>> Path("prepared").is_dir()
    True
    """
    folder = Path(os.path.abspath(folder))
    if not _is_missing_or_empty(folder):
        return
    set_aside = _siblings(folder, "replaced")
    if not set_aside:
        return
    for partial in _siblings(folder, "partial"):
        os.close(_lock_leftover(folder, partial))
    newest = max(set_aside, key=lambda path: path.stat().st_mtime_ns)
    os.rename(newest, folder)


class StagedFolder:
    """Collects files in `NAME.partial-PID` and renames that folder at the end.

    The temporary folder is locked while its process lives. Folders that a
    killed process left behind are removed by the next one, or put back if they
    are the only copy. While a process is writing an output, a second one is
    refused.

    Args:
        output_dir: The final folder. It may exist if it is empty, or if
            `replace` is true.
        replace: Whether an existing folder is replaced, at the very end.

    Raises:
        UserError: on entry, if another process is writing this folder, or it
            has content and is not to be replaced; on exit, if the disk is full.

    Example:
    >>> with StagedFolder("prepared") as folder:
    ...     size = (folder / "hello.txt").write_text("hello")
    >>> Path("prepared/hello.txt").read_text()
    'hello'
    """

    def __init__(self, output_dir: str | Path, replace: bool = False):
        self.output_dir = Path(os.path.abspath(output_dir))
        self.replace = replace
        self.folder = self._sibling("partial")
        self._lock = None

    def __enter__(self) -> Path:
        try:
            self.output_dir.parent.mkdir(parents=True, exist_ok=True)
            self._clear_leftovers()
            self.folder.mkdir()
        except OSError as error:
            raise UserError(
                f"{self.output_dir}: cannot be written here ({error.strerror}: "
                f"{error.filename})."
            ) from error
        self._lock = lock_folder(self.folder)
        return self.folder

    def __exit__(self, error_type, error, traceback):
        try:
            if error_type is None:
                self._publish()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise UserError(
                f"{self.output_dir}: could not be written "
                f"({error.strerror}); nothing was kept. Free some space, or "
                "choose another disk, and run again."
            ) from error

    def _publish(self):
        replaced = None
        if self.replace and self.output_dir.exists():
            replaced = self._sibling("replaced")
            os.rename(self.output_dir, replaced)
        try:
            os.rename(self.folder, self.output_dir)
        except BaseException:
            if replaced is not None:
                os.rename(replaced, self.output_dir)
            raise
        if replaced is not None:
            shutil.rmtree(replaced, ignore_errors=True)

    def _clear_leftovers(self):
        """Removes folders of killed processes, and puts an only copy back."""
        recover_folder(self.output_dir)
        for partial in _siblings(self.output_dir, "partial"):
            lock = _lock_leftover(self.output_dir, partial)
            shutil.rmtree(partial)
            os.close(lock)
        if not _is_missing_or_empty(self.output_dir):
            if not self.replace:
                raise UserError(
                    f"{self.output_dir}: exists already. Choose another folder."
                )
            for replaced in _siblings(self.output_dir, "replaced"):
                shutil.rmtree(replaced, ignore_errors=True)

    def _sibling(self, kind) -> Path:
        return self.output_dir.with_name(
            f"{self.output_dir.name}.{kind}-{os.getpid()}"
        )


def _siblings(folder, kind):
    """The folders of all processes for one output, such as `NAME.partial-7`."""
    prefix = f"{folder.name}.{kind}-"
    if not folder.parent.is_dir():
        return []
    return [
        path
        for path in folder.parent.iterdir()
        if path.name.startswith(prefix)
        and path.name.removeprefix(prefix).isdigit()
    ]


def _lock_leftover(output_dir, partial):
    """Locks a temporary folder; refuses one whose process still lives."""
    lock = lock_folder(partial)
    if lock is None:
        raise UserError(
            f"{output_dir}: another process is writing it (in {partial.name}). "
            "Wait for it, or choose another folder."
        )
    return lock


def _is_missing_or_empty(folder):
    return not folder.exists() or (
        folder.is_dir() and not any(folder.iterdir())
    )
