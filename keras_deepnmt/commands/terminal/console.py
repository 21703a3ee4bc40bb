"""Progress messages, progress bars and warnings, all on stderr."""

import contextlib
import datetime
import logging
import time
import warnings
from collections.abc import Callable, Iterator

import rich.console
import rich.progress

from keras_deepnmt.terminal_text import escape_controls, print_line

_LOGGER = "keras_deepnmt"
# Between two lines in a log.
_SECONDS = 60
_logger = logging.getLogger(__name__)


class Console:
    """Prints progress messages to stderr, or nothing if `quiet`."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self._start = time.monotonic()

    def print(self, text: str) -> None:
        """Prints one or more lines."""
        if not self.quiet:
            print_line(text)

    def print_stage(self, text: str) -> None:
        """Prints a heading with the seconds since the console was made."""
        seconds = time.monotonic() - self._start
        self.print(f"\n[{seconds:5.0f} s] {text}")


@contextlib.contextmanager
def progress_bar(
    label: str,
    total: int | Callable[[], int | None] | None = None,
    quiet: bool = False,
    done: int = 0,
) -> Iterator[Callable[[float], None]]:
    """Shows how far a command is, and yields a function that advances it.

    In a terminal a bar on stderr has the number done, the total if there is
    one, the rate and the time left. If stderr is not a terminal, a line a
    minute is logged instead. Be `quiet` also while results are printed to a
    terminal. `done` is the number that an earlier command has done, to which
    the rate does not apply. `total` may be a function that estimates it anew.

    Example:
    >>> with progress_bar("sentences", 10) as advance:
    ...     advance(10)
    """
    console = rich.console.Console(stderr=True)
    progress = _Progress(label, total, done)
    if quiet:
        yield lambda number: None
        return
    if not console.is_terminal:
        yield progress.log
        return
    bars = rich.progress.Progress(
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TextColumn("{task.fields[speed]}"),
        console=console,
    )
    with bars:
        task = bars.add_task(
            label, total=progress.total, completed=done, speed=""
        )

        def advance(number):
            progress.add(number)
            bars.update(
                task,
                total=progress.total,
                completed=progress.done,
                speed=progress.speed(),
            )

        yield advance


class _Progress:
    """Counts what is done, and estimates the rate and the time left."""

    def __init__(self, label, total, done):
        self._label = label
        self._total = total
        self._before = self.done = done
        self._start = self._logged = time.monotonic()

    @property
    def total(self):
        return self._total() if callable(self._total) else self._total

    def add(self, number):
        self.done += number

    def speed(self):
        """Describes the rate since the start, and the time left if known."""
        seconds = max(time.monotonic() - self._start, 1e-9)
        rate = (self.done - self._before) / seconds
        if not rate:
            return ""
        shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        total = self.total
        if total is None:
            return f"{shown}/s"
        left = round(max(total - self.done, 0) / rate)
        return f"{shown}/s, {datetime.timedelta(seconds=left)} left"

    def log(self, number):
        """Counts, and logs a line if the last one was a minute ago."""
        self.add(number)
        now = time.monotonic()
        if now - self._logged < _SECONDS:
            return
        self._logged = now
        of_all, total = "", self.total
        if total:
            part = self.done / total
            of_all = f" of {total:,} ({part:.0%})"
        _logger.info(
            "%s%s %s, %s",
            f"{self.done:,.0f}",
            of_all,
            self._label,
            self.speed(),
        )


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
        f"deepnmt: warning: {escape_controls(str(message))}\n"
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
        return f"deepnmt: {prefix}{escape_controls(record.getMessage())}"
