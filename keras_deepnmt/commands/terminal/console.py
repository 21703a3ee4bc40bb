"""Progress messages, progress bars and warnings, all on stderr."""

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
    """Prints progress messages to stderr, or nothing if `quiet`."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self._start = time.monotonic()

    def print(self, text: str) -> None:
        """Prints one or more lines."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def print_stage(self, text: str) -> None:
        """Prints a heading with the seconds since the console was made."""
        seconds = time.monotonic() - self._start
        self.print(f"\n[{seconds:5.0f} s] {text}")


@contextlib.contextmanager
def progress_bar(
    label: str, total: int | None = None, quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar on stderr and yields a function that advances it.

    No bar is shown if stderr is not a terminal. Be `quiet` also while results
    are printed to a terminal.

    Example:
    >>> with progress_bar("sentences", 10) as advance:
    ...     advance(10)
    """
    console = rich.console.Console(stderr=True)
    shown = console.is_terminal and not quiet
    bars = rich.progress.Progress(
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
        console=console,
        disable=not shown,
    )
    with bars:
        task = bars.add_task(label, total=total)
        yield functools.partial(bars.advance, task)


@contextlib.contextmanager
def short_log_messages(quiet: bool = False) -> Iterator[None]:
    """Prints log records and warnings as one line each, without code lines.

    If `quiet`, log records below the level of a warning are not shown.
    """
    logger = logging.getLogger(_LOGGER)
    handler = logging.StreamHandler()
    handler.setFormatter(_ShortFormatter())
    original_format = warnings.formatwarning
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
        warnings.formatwarning = original_format
        logger.propagate = propagates
        logger.setLevel(level)
        logger.removeHandler(handler)


class _ShortFormatter(logging.Formatter):
    def format(self, record):
        level = record.levelname.lower()
        prefix = f"{level}: " if record.levelno >= logging.WARNING else ""
        return f"deepnmt: {prefix}{record.getMessage()}"
