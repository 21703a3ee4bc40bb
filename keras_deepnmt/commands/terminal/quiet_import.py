"""Imports the backend without the messages that it prints to stderr."""

import contextlib
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator

from keras_deepnmt.errors import UserError
from keras_deepnmt.xla.autoclustering import ask_for_autoclustering

# Such as "W0000 00:00:1795341509.729184   20707 op_kernel.cc:1858] ...".
_LIBRARY_LINE = re.compile(rb"[IWE]\d{4} \d\d:\d\d:[\d.]+ +\d+ [\w.]+:\d+\] ")


def import_backend(keep_memory: bool = True) -> None:
    """Imports Keras and its backend without printing anything.

    With `keep_memory` the process keeps the memory that it frees, see
    `keep_freed_memory`.

    TensorFlow prints messages before it reads `TF_CPP_MIN_LOG_LEVEL`, so stderr
    is buffered during the import, and printed only if the import fails.
    """
    with _interrupts_deferred(), _stderr_buffered():
        try:
            import keras
        except ValueError as error:
            raise UserError(
                f"Keras cannot be imported ({error}). Set the environment "
                "variable KERAS_BACKEND to tensorflow or jax."
            ) from error

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            tf.get_logger().setLevel("ERROR")
            # TensorFlow reads these flags when it looks for devices.
            ask_for_autoclustering()
            # Prints its messages about GPUs now; initializes no device.
            tf.config.list_physical_devices()
        from keras_deepnmt.training import keep_freed_memory

        if keep_memory:
            keep_freed_memory()


@contextlib.contextmanager
def library_lines_removed() -> Iterator[None]:
    """Removes the log lines of C++ libraries from what the body prints.

    TensorFlow logs the errors that it raises, too. All of stderr appears at the
    end of the body.
    """
    with _stderr_redirected() as (buffer, stderr):
        try:
            yield
        finally:
            sys.stderr.flush()
            buffer.seek(0)
            for line in buffer:
                if not _LIBRARY_LINE.match(line):
                    _write(stderr, line)


@contextlib.contextmanager
def _stderr_buffered() -> Iterator[None]:
    """Drops what the body prints to stderr, unless it fails."""
    with _stderr_redirected() as (buffer, stderr):
        try:
            yield
        except BaseException:
            sys.stderr.flush()
            buffer.seek(0)
            _write(stderr, buffer.read())
            raise


def _write(descriptor, text):
    # Perhaps nobody reads it.
    with contextlib.suppress(OSError):
        os.write(descriptor, text)


@contextlib.contextmanager
def _stderr_redirected():
    """Redirects stderr to a file; yields it and the original descriptor."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as buffer:
        os.dup2(buffer.fileno(), 2)
        try:
            yield buffer, saved
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[None]:
    # An exception during the import of an extension module causes many
    # unrelated errors, so Ctrl-C and SIGTERM come when the import is done.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = []
    previous = {
        number: signal.signal(number, lambda n, frame: received.append(n))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if received:
        signal.raise_signal(received[0])
