"""What a person sees: progress and warnings on stderr, results on stdout."""

import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Iterator

_LOGGER = "keras_deepnmt"


class Console:
    """Tells a person at the terminal what is going on.

    Args:
        quiet: whether to say nothing.

    Example:
    >>> Console(quiet=True).say("Nobody reads this.")
    """

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        """Prints progress.

        Args:
            text: one or more lines.
        """
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def stage(self, text: str) -> None:
        """Prints the heading of a stage with the seconds since the start.

        Args:
            text: what comes now.
        """
        seconds = time.monotonic() - self._start
        self.say(f"\n[{seconds:5.0f} s] {text}")


@contextlib.contextmanager
def short_messages() -> Iterator[None]:
    """Shows log records and warnings in one line without places in code.

    Example:
    >>> with short_messages():
    ...     logging.getLogger("keras_deepnmt").warning("Seen once.")
    """
    logger = logging.getLogger(_LOGGER)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("deepnmt: %(message)s"))
    long_form = warnings.formatwarning
    propagates = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    warnings.formatwarning = lambda message, *place, **more: (
        f"deepnmt: {message}\n"
    )
    try:
        yield
    finally:
        warnings.formatwarning = long_form
        logger.propagate = propagates
        logger.removeHandler(handler)
