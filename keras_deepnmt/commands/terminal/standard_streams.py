"""Standard output and standard error that are closed or have lost their reader.

The work of a command is done all the same: what nobody can read is dropped.
"""

import errno
import io
import os
import sys

# Nobody can read: the reader is gone, or the stream was never open to write.
_UNREADABLE = (errno.EPIPE, errno.EBADF)


def open_standard_streams() -> None:
    """Makes this process' standard streams ones that can always be written.

    A closed one becomes the null device: otherwise the next file that is opened
    would get its number, and the messages of libraries. Errors of standard
    error are dropped; of standard output those that say that nobody reads it,
    unless `stop_without_reader` is called.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout = _stream(sys.stdout, 1)
    sys.stderr = _stream(sys.stderr, 2)


def stop_without_reader() -> None:
    """From now on a closed pipe of standard output is a `BrokenPipeError`.

    For commands that would go on computing results which nobody reads.
    """
    if isinstance(sys.stdout, _Stream):
        sys.stdout.raises_broken_pipe = True


def drop_output(number: int) -> None:
    """Redirects a standard stream to the null device."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, number)
    os.close(null_device)


class _Stream(io.TextIOWrapper):
    """A standard stream that drops what it cannot write."""

    raises_broken_pipe = False

    def write(self, text):
        try:
            return super().write(text)
        except OSError as error:
            self._drop(error)
        return len(text)

    def flush(self):
        try:
            super().flush()
        except OSError as error:
            self._drop(error)
            super().flush()

    def _drop(self, error):
        if self.fileno() == 1 and (
            error.errno not in _UNREADABLE
            or (error.errno == errno.EPIPE and self.raises_broken_pipe)
        ):
            raise error
        # A terminal that is not ready yet may be later.
        if not isinstance(error, BlockingIOError):
            drop_output(self.fileno())


def _stream(stream, number):
    """A stream in the place of one of Python's, which is None if closed."""
    options = {"encoding": "utf-8", "errors": "backslashreplace"}
    if stream is not None:
        try:
            if stream.fileno() != number:
                return stream
        except (OSError, ValueError):  # not one of the system
            return stream
        names = (*options, "line_buffering", "write_through")
        options = {name: getattr(stream, name) for name in names}
    unbuffered = options.get("write_through", False)
    raw = open(number, "wb", 0 if unbuffered else -1, closefd=False)
    return _Stream(raw, **options)
