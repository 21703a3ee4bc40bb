"""Claims of rows by processes that share the work folder of the table."""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

# Seconds after which a claim is that of another process.
_WAIT = 1.0


@contextlib.contextmanager
def claimed(file: Path) -> Iterator[int | None]:
    """Claims something for this process, until the end of the block.

    Yields the descriptor of `file` that holds the claim, `None` if another
    process has it. A process that is started with this descriptor shares the
    claim and keeps it, should it survive. When all of them have ended, however
    they ended, the claim is free.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # A file open for writing: only its lock is known to the other machines of a
    # network file system, that of a folder is not.
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _lock(descriptor):
            yield None
            return
        owner = f"process {os.getpid()} on {socket.gethostname()}"
        os.truncate(descriptor, 0)
        os.write(descriptor, owner.encode())
        yield descriptor
    finally:
        os.close(descriptor)


def claim_owner(file: Path) -> str | None:
    """Returns who has the claim, `None` if it is free."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 200).decode() or "another process"
    else:
        return None
    finally:
        os.close(descriptor)


def _lock(descriptor):
    """Locks a file; returns whether no other process keeps it.

    `claim_owner` locks it too, but only for a moment.
    """
    end = time.monotonic() + _WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_WAIT / 20)
        else:
            return True
