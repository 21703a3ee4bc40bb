"""Imports the backend without the messages that it prints to stderr."""

import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator


def import_backend() -> None:
    """Imports Keras and its backend without printing anything.

    TensorFlow prints messages before it reads `TF_CPP_MIN_LOG_LEVEL`, so stderr
    is buffered during the import, and printed only if the import fails.
    """
    with _interrupts_deferred(), _stderr_buffered():
        import keras

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            tf.get_logger().setLevel("ERROR")
            # Prints its messages about GPUs now; initializes no device.
            tf.config.list_physical_devices()


@contextlib.contextmanager
def _stderr_buffered() -> Iterator[None]:
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as buffer:
        os.dup2(buffer.fileno(), 2)
        try:
            yield
        except BaseException:
            sys.stderr.flush()
            buffer.seek(0)
            os.write(saved, buffer.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[None]:
    # Ctrl-C during the import of an extension module causes many unrelated
    # errors, so it is raised when the import is done.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = []
    previous = signal.signal(
        signal.SIGINT, lambda *signal_and_frame: received.append(True)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if received:
        raise KeyboardInterrupt
