"""What a person sees: progress and warnings on stderr, results on stdout."""

import contextlib
import functools
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import rich.console
import rich.progress

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
def counting(
    what: str, total: int | None = None, quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Shows a live count on stderr while a loop runs.

    Nothing is shown where stderr is no terminal, or where the results go to
    the same terminal line by line.

    Args:
        what: what is counted.
        total: how many there will be, if it is known.
        quiet: whether to show nothing.

    Yields:
        A function to call with the number just done.

    Example:
    >>> with counting("sentences", 10) as advance:
    ...     advance(10)
    """
    console = rich.console.Console(stderr=True)
    shown = console.is_terminal and not quiet
    if total is None:
        shown = shown and not sys.stdout.isatty()
    bars = rich.progress.Progress(
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
        console=console,
        disable=not shown,
    )
    with bars:
        task = bars.add_task(what, total=total)
        yield functools.partial(bars.advance, task)


@contextlib.contextmanager
def short_messages(quiet: bool = False) -> Iterator[None]:
    """Shows log records and warnings in one line without places in code.

    Args:
        quiet: whether to show warnings only.

    Example:
    >>> with short_messages():
    ...     logging.getLogger("keras_deepnmt").warning("Seen once.")
    """
    logger = logging.getLogger(_LOGGER)
    handler = logging.StreamHandler()
    handler.setFormatter(_ShortFormatter())
    long_form = warnings.formatwarning
    propagates, level = logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    warnings.formatwarning = lambda message, *place, **more: (
        f"deepnmt: warning: {message}\n"
    )
    try:
        yield
    finally:
        warnings.formatwarning = long_form
        logger.propagate = propagates
        logger.setLevel(level)
        logger.removeHandler(handler)


class _ShortFormatter(logging.Formatter):
    def format(self, record):
        level = record.levelname.lower()
        mark = f"{level}: " if record.levelno >= logging.WARNING else ""
        return f"deepnmt: {mark}{record.getMessage()}"
