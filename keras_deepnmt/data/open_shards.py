"""Keeps a bounded number of shards open, those that were read last."""

import errno
import os
import threading
import weakref
from collections import OrderedDict
from pathlib import Path

from array_record.python.array_record_module import ArrayRecordReader

from keras_deepnmt.errors import UserError

try:
    import resource
except ImportError:  # on Windows
    resource = None

_READER_OPTIONS = "readahead_buffer_size:0"
_READER_BUFFER_BYTES = 32_768
# An open shard of 32,768 pairs takes 0.3 MB, mostly for its index.
_MOST_OPEN = 2_048
# Left to the rest of the process: libraries, logs, checkpoints.
_OTHER_FILES = 64


class OpenShards:
    """The shards that a process has open, the least recently used first.

    All stores of a process share one instance, since the system limits the
    open files of the whole process. At most three quarters of that limit are
    used. A shard that is not open is opened by `get`, which may close another
    one; it stays usable for whoever is reading it. Threads may share it.
    """

    def __init__(self):
        self._clear()
        if hasattr(os, "register_at_fork"):
            # Threads of a reader do not exist in a forked process.
            this = weakref.ref(self)
            os.register_at_fork(
                after_in_child=lambda: this() is not None and this()._clear()
            )

    def __len__(self) -> int:
        return len(self._readers)

    def get(self, owner: int, shard: int, file: Path) -> ArrayRecordReader:
        """Returns the reader of a shard; `owner` and `shard` identify it."""
        key = (owner, shard)
        with self._lock:
            reader = self._readers.get(key)
            if reader is not None:
                self._readers.move_to_end(key)
                return reader
            self._shrink(most_open() - 1)
        reader = self._open(file)
        with self._lock:
            self._readers[key] = reader
            self._shrink(most_open())
        return reader

    def forget(self, owner: int) -> None:
        """Closes the shards of an owner."""
        with self._lock:
            for key in [key for key in list(self._readers) if key[0] == owner]:
                del self._readers[key]

    def _open(self, file):
        try:
            return open_shard(file)
        except UserError:
            with self._lock:
                if not self._readers:
                    raise
                # The rest of the process may have most files of the limit.
                self._shrink(0)
        return open_shard(file)

    def _shrink(self, size):
        # A reader closes its file when nobody holds it any more, so one that
        # another thread is reading is not closed under its hands.
        while len(self._readers) > size:
            self._readers.popitem(last=False)

    def _clear(self):
        self._lock = threading.RLock()
        self._readers = OrderedDict()


def most_open() -> int:
    """Returns how many shards this process may keep open, at least 1."""
    if resource is None:
        return 256
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _MOST_OPEN
    return max(1, min(_MOST_OPEN, limit - max(_OTHER_FILES, limit // 4)))


def open_shard(file: Path) -> ArrayRecordReader:
    """Opens a shard, or says in a `UserError` why it cannot be opened."""
    try:
        reader = ArrayRecordReader(
            str(file),
            options=_READER_OPTIONS,
            file_reader_buffer_size=_READER_BUFFER_BYTES,
        )
        if not reader.ok():
            # Opening does not raise, and such a reader counts no records.
            reader.read([0])
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{file}: {_reason(error)}") from error
    return reader


def _reason(error):
    too_many = os.strerror(errno.EMFILE)
    if too_many in str(error):
        return (
            f"cannot be opened ({too_many}). Raise the limit of open files "
            "(`ulimit -n`), or close other files of this process."
        )
    for number in (errno.ENOENT, errno.EACCES, errno.EIO):
        if os.strerror(number) in str(error):
            return f"cannot be opened ({os.strerror(number)})."
    return f"not a readable shard ({error}). Run `deepnmt prepare` again."
