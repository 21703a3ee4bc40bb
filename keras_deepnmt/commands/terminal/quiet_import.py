"""Imports the backend without the lines it writes to stderr."""

import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator


def import_backend() -> None:
    """Imports Keras and its backend in silence.

    TensorFlow's first lines come before it reads its log variables, so file
    descriptor 2 is held back during the import and replayed if it fails; the
    lines of later operations do obey `TF_CPP_MIN_LOG_LEVEL`.

    Example:
    >>> import_backend()
    """
    with _interrupts_held_back(), _stderr_held_back():
        import keras

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            tf.get_logger().setLevel("ERROR")
            # Looks for GPUs now, with its lines, and starts nothing.
            tf.config.list_physical_devices()


@contextlib.contextmanager
def _stderr_held_back() -> Iterator[None]:
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            sys.stderr.flush()
            held.seek(0)
            os.write(saved, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    # An interrupt in the middle of an extension's import leaves a page of
    # unrelated errors; it is taken up again when the import is done.
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
