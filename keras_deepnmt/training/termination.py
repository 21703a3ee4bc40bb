"""SIGTERM, as clusters send it: stop now, keep everything, go on later."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from keras_deepnmt.errors import Terminated


@contextlib.contextmanager
def termination_raised() -> Iterator[None]:
    """Raises `Terminated` in the body when the process gets SIGTERM.

    Without it the process would end at once. In a thread other than the main
    one Python allows no handlers, and nothing changes.

    Example:
    >>> with termination_raised():
    ...     pass
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _raise(number, frame):
    raise Terminated
