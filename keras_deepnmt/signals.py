"""Ctrl-C and SIGTERM raise an exception, whenever they come."""

import contextlib
import gc
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# Seconds until a signal that came in a bad moment is sent again.
_DELAY = 0.01


@contextlib.contextmanager
def raised_on(number: int, exception: type[BaseException]) -> Iterator[None]:
    """Raises `exception` in its body when the process gets a signal.

    Python prints and drops an exception that is raised in a callback of its
    garbage collection or in a `__del__`, and JAX, which TensorFlow imports too,
    has such a callback. There the signal is postponed until the callback has
    ended.

    Outside the main thread, where Python allows no signal handlers, it does
    nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    waiting = []

    def handle(number, frame):
        if not _drops_exceptions(frame):
            waiting.clear()
            raise exception
        for timer in waiting:
            timer.cancel()
        again = threading.Timer(_DELAY, _send_to_main_thread, [number])
        again.daemon = True
        waiting.append(again)
        again.start()

    previous = signal.signal(number, handle)
    try:
        yield
        if waiting:
            raise exception
    finally:
        try:
            for timer in list(waiting):
                # Otherwise it could end the process, without this handler.
                timer.cancel()
                timer.join()
        finally:
            signal.signal(number, previous)


def _send_to_main_thread(number):
    if hasattr(signal, "pthread_kill"):
        # Ends a system call for which the main thread waits, too.
        signal.pthread_kill(threading.main_thread().ident, number)
    else:  # on Windows
        signal.raise_signal(number)


def _drops_exceptions(frame: FrameType | None) -> bool:
    """Whether Python drops an exception that is raised in this frame."""
    callbacks = {getattr(call, "__code__", None) for call in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
