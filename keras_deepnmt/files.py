"""Hashes, locks, and files and folders that are written whole or not at all."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from keras_deepnmt.errors import UserError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

# The name that Keras presets and our checkpoints give to a model's weights.
WEIGHTS_FILE = "model.weights.h5"
# Makes a folder with a Keras preset a preset folder of this package.
PRESET_FILE = "translator.json"
# What `deepnmt evaluate` measured of a run.
SCORES_FILE = "scores.json"
# Numbers of the errors for a full disk, a quota and a limit on file sizes.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Of the name of a working folder. Nobody has such a name by accident, and
# nobody can put a link in its place beforehand.
_RANDOM_BYTES = 8
_WORKING_NAME = re.compile(r"\.(.+)\.[0-9a-f]{16}\.partial", re.DOTALL)
# What readers of lines take for the end of one, or a part of it.
_LINE_ENDS = re.compile(r"[\n\r]")


def file_sha256(path: str | Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bytes_sha256(content: bytes) -> str:
    """Returns the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def as_line(text: str) -> str:
    r"""Returns a text with spaces instead of line ends, as a line of a file.

    A translation may have them, from pieces for bytes.

    Example:
    >>> as_line("a\ndog")
    'a dog'
    """
    return _LINE_ENDS.sub(" ", text)


def as_cell(text: str) -> str:
    r"""Returns a text with spaces instead of line ends and tabs, as in TSV.

    Example:
    >>> as_cell("a\tsmall\ndog")
    'a small dog'
    """
    return as_line(text).replace("\t", " ")


def lines_sha256(lines: Iterable[str]) -> str:
    """Returns the SHA-256 of a text file with these lines, in hexadecimal."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


@contextmanager
def working_folder(path: str | Path) -> Iterator[Path]:
    """Yields a new folder beside `path`, in which it can be written first.

    Its name is `.NAME.RANDOM.partial`, with 16 random hexadecimal digits; only
    the user can open it, and it is locked while its process lives. It is
    removed at the end, and so are those that dead processes left in the same
    place: see `remove_leftovers`.
    """
    path = Path(path)
    working = lock = None
    try:
        try:
            remove_leftovers(path.parent)
            is_made = False
            while not is_made:
                # Named before it is made: Ctrl-C may come in between.
                working = _new_working_name(path)
                os.mkdir(working, 0o700)
                lock, is_made = _lock_new(working)
        except OSError as error:
            working = None
            # The name that the user knows.
            error.filename = str(path)
            raise
        yield working
    finally:
        try:
            if working is not None:
                _remove_working_folder(working)
        finally:
            if lock is not None:
                os.close(lock)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path, and renames that file to `path` at the end.

    The temporary file has the same name, in a `working_folder`. It is flushed
    to the disk before the renaming, and gets the mode of the file that it
    replaces. If the block raises, it is removed: `path` then stays as it was.
    """
    path = Path(path)
    with working_folder(path) as folder:
        temporary = folder / path.name
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        keep_modes(path, temporary)
        os.replace(temporary, path)


def writable_file(path: str | Path) -> Path:
    """Returns the file that a path names, links followed.

    For a file that is written after long work: what is refused here would only
    be found at its end.

    Raises a `UserError` if there is no such folder, or `path` is a folder.
    """
    file = Path(path).resolve()
    if file.is_dir() or not file.parent.is_dir():
        kind = "is a folder" if file.is_dir() else f"no folder {file.parent}"
        raise UserError(f"{path}: cannot be written ({kind}).")
    return file


def keep_modes(old: Path, new: Path) -> None:
    """Gives a new file or folder, and all in it, the modes of an old one."""
    for place in (new, *new.rglob("*")):
        before = old / place.relative_to(new)
        if before.exists():
            place.chmod(stat.S_IMODE(before.stat().st_mode))


def open_unlinked(path: str | Path, mode: str, **options: Any) -> IO:
    """Opens a file as `open` does, but follows no link.

    For a file whose name others know before it is made: they could plant a
    link to another file of the user.

    Raises a `UserError` if `path` is a link.

    Example:
    >>> os.symlink("another.txt", "part")
    >>> open_unlinked("part", "a")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: part: is a link, which is not followed...
    """

    def opened(name, flags):
        # 0 on Windows, which has no such flag.
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)

    try:
        return open(path, mode, opener=opened, **options)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise UserError(
            f"{path}: is a link, which is not followed here. Rename or delete "
            "it."
        ) from error


def refuse_links(folder: str | Path, parts: Iterable[str]) -> None:
    """Refuses symbolic links in the parts of a folder that are to be copied.

    The copy, which may be published, would have what they lead to. `folder`
    itself, which the user has named, may be a link.

    Example:
    >>> os.symlink("/etc/hostname", "notes.txt")
    >>> refuse_links(".", ["notes.txt"])
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: notes.txt: is a link to /etc/hostname, ...
    """
    for part in parts:
        path = Path(folder, part)
        inside = path.rglob("*") if not path.is_symlink() else ()
        for found in (path, *inside):
            if found.is_symlink():
                raise UserError(
                    f"{found}: is a link to {os.readlink(found)}, whose "
                    "content would be copied. Put the file itself in its "
                    "place, or delete the link."
                )


def write_bytes(path: str | Path, content: bytes) -> None:
    """Writes a file atomically, see `atomic_file`."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | Path, content: str) -> None:
    """Writes a UTF-8 text file atomically, see `atomic_file`."""
    write_bytes(path, content.encode("utf-8"))


def write_json(path: str | Path, content: Any) -> None:
    """Writes a JSON file atomically, see `atomic_file`."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def lock_folder(folder: str | Path, shared: bool = False) -> int | None:
    """Locks a folder for this process, alone or `shared` with others.

    Returns a file descriptor: the lock lasts until it is closed or the process
    ends. It is `None` if another process has the lock, or has just deleted the
    folder. Where the system has no file locks (Windows) nothing is locked.
    """
    # Not by filelock: its shared locks are databases, and the lock of a folder
    # must move with the folder when it is renamed.
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)
    descriptor = os.open(folder, os.O_RDONLY)
    is_locked = False
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        is_locked = _is_at(descriptor, folder)
    except BlockingIOError:
        pass
    finally:
        if not is_locked:
            os.close(descriptor)
    return descriptor if is_locked else None


@contextmanager
def file_lock(path: str | Path) -> Iterator[None]:
    """Waits until no other process is in a `file_lock` block of this path.

    For reading and rewriting a file that several processes change. The lock
    ends with the block or with the process. It is held on a hidden file beside
    `path`, which is deleted at the end.
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
    it was killed in between, the old one gets its name back, unless something
    has that name by now. Raises a `UserError` if another process is replacing
    the folder, or it cannot be renamed.
    """
    folder = Path(os.path.abspath(folder))
    if not _is_missing_or_empty(folder):
        return
    working = _working_folders(folder.parent, folder.name)
    if not any(os.path.lexists(_set_aside(one)) for one in working):
        return
    # The newest last: each one takes the place of the one before.
    for one in working:
        lock = _lock_leftover(folder, one)
        try:
            _remove_working_folder(one)
        except OSError as error:
            raise UserError(
                f"{folder}: a command that was killed while it replaced this "
                f"folder left it as {_set_aside(one)}, which could not be "
                f"renamed ({error.strerror}). Rename it to {folder}."
            ) from error
        finally:
            os.close(lock)


def copy_folder(folder: Path, new: Path) -> None:
    """Copies a folder without links, see `refuse_links`.

    What Python has compiled is left out. An error of the system is raised as
    it is: `shutil.copytree` raises one without a number, by which a full disk
    would be known.
    """
    new.mkdir()
    for path in folder.iterdir():
        if path.name == "__pycache__":
            continue
        copy = copy_folder if path.is_dir() else shutil.copy2
        copy(path, new / path.name)


def delete_folder(folder: str | Path) -> None:
    """Deletes a folder, which disappears at once with all that it holds.

    What a killed process has not deleted is removed by the next one.
    """
    folder = Path(folder)
    with working_folder(folder) as working:
        os.rename(folder, working / folder.name)


def remove_leftovers(folder: str | Path) -> None:
    """Removes the working folders in a folder whose processes are dead.

    Nothing else is touched: they are known by their names, see
    `working_folder`, and by their locks. A folder that was set aside in one of
    them, and is the only copy, gets its name back.
    """
    if fcntl is None:  # Which processes live is not known.
        return
    for working in _working_folders(Path(folder)):
        # Of another user, or just removed.
        with suppress(OSError):
            lock = lock_folder(working)
            if lock is not None:
                try:
                    _remove_working_folder(working)
                finally:
                    os.close(lock)


class StagedFolder:
    """Collects files in a temporary folder and renames that folder at the end.

    The temporary folder is in a `working_folder`. Those that a killed process
    left behind are removed by the next one, or put back if they hold the only
    copy. While a process is writing an output, a second one is refused.

    The final folder may exist if it is empty. With `replace` an existing one is
    replaced at the very end: the new one gets its mode, and the files those of
    the old files. Raises a `UserError` if it has content and is not to be
    replaced, and at the end if the disk is full.
    """

    def __init__(self, output_dir: str | Path, replace: bool = False):
        self.output_dir = Path(os.path.abspath(output_dir))
        self.replace = replace
        self._working = ExitStack()

    def __enter__(self) -> Path:
        try:
            self.output_dir.parent.mkdir(parents=True, exist_ok=True)
            self._check_output()
            working = working_folder(self.output_dir)
            self._place = self._working.enter_context(working)
            self._folder = self._place / self.output_dir.name
            self._folder.mkdir()
        except BaseException as error:
            self._working.close()  # also after Ctrl-C
            if not isinstance(error, OSError):
                raise
            raise UserError(
                f"{self.output_dir}: cannot be written here ({error.strerror}: "
                f"{error.filename})."
            ) from error
        return self._folder

    def __exit__(self, error_type, error, traceback):
        with self._working:
            if error_type is None:
                self._publish()
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise UserError(
                f"{self.output_dir}: could not be written "
                f"({error.strerror}); nothing was kept. Free some space, or "
                "choose another disk, and run again."
            ) from error

    def _publish(self):
        if self.replace and self.output_dir.exists():
            keep_modes(self.output_dir, self._folder)
            # If the next line fails, the working folder's end puts it back.
            os.rename(self.output_dir, _set_aside(self._place))
        os.rename(self._folder, self.output_dir)

    def _check_output(self):
        """Refuses an output that another process writes, or that is there."""
        recover_folder(self.output_dir)
        for working in _working_folders(
            self.output_dir.parent, self.output_dir.name
        ):
            os.close(_lock_leftover(self.output_dir, working))
        if not self.replace and not _is_missing_or_empty(self.output_dir):
            raise UserError(
                f"{self.output_dir}: exists already. Choose another folder."
            )


def _new_working_name(path):
    """A working folder for a path, which is not made yet."""
    random = secrets.token_hex(_RANDOM_BYTES)
    return path.with_name(f".{path.name}.{random}.partial")


def _lock_new(working):
    """Locks a new working folder; returns the lock, and whether it is ours.

    The lock is `None` where the file system has no locks. Other processes
    cannot lock the folder there either, and so leave it alone.
    """
    try:
        lock = lock_folder(working)
    except FileNotFoundError:
        return None, False
    except OSError:
        return None, True
    # Without a lock, another process has just removed it as a leftover.
    return lock, lock is not None


def _working_folders(folder, name=None):
    """The working folders in a folder, of one name or of all; newest last."""
    found = []
    # The folder may be missing, or unreadable; others remove its entries.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _WORKING_NAME.fullmatch(entry.name)
            if not match or name not in (None, match[1]):
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    time = entry.stat(follow_symlinks=False).st_mtime_ns
                    found.append((time, entry.path))
    return [Path(path) for _, path in sorted(found)]


def _output_of(working):
    """The path for which a working folder was made."""
    return working.with_name(_WORKING_NAME.fullmatch(working.name)[1])


def _set_aside(working):
    """Where `StagedFolder` puts the folder that it replaces."""
    return working / f"{_output_of(working).name}.replaced"


def _remove_working_folder(working):
    """Removes a working folder, but puts an only copy in it back."""
    output, replaced = _output_of(working), _set_aside(working)
    if os.path.lexists(replaced) and _is_missing_or_empty(output):
        os.rename(replaced, output)
    shutil.rmtree(working, ignore_errors=True)


def _lock_leftover(output_dir, working):
    """Locks a working folder; refuses one whose process still lives."""
    lock = None
    with suppress(OSError):  # a file system without locks
        lock = lock_folder(working)
    if lock is None:
        raise UserError(
            f"{output_dir}: another process is writing it (in {working.name}). "
            "Wait for it, or choose another folder."
        )
    return lock


def _is_missing_or_empty(folder):
    return not folder.exists() or (
        folder.is_dir() and not any(folder.iterdir())
    )
