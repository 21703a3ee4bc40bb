"""What a failure looks like: one line on stderr, never half a screen."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

_LONGEST = 600
_EXTRAS = {
    "jax": "jax",
    "matplotlib": "analysis",
    "torch": "benchmark",
}


def explain(error: Exception) -> str | None:
    """Says in one line what went wrong, if it is the user's to mend.

    Args:
        error: what a room raised.

    Returns:
        The line, or `None` where the error is a fault of the program.

    Example:
    >>> explain(FileNotFoundError(2, "No such file or directory", "a.de"))
    'a.de: No such file or directory.'
    >>> explain(ZeroDivisionError()) is None
    True
    """
    if isinstance(error, OSError):
        return _explain_os_error(error)
    if isinstance(error, ImportError) and error.name:
        return _explain_import_error(error)
    if isinstance(error, ValueError) or _is_full_disk(error):
        return one_line(str(error))
    return None


def one_line(text: str) -> str:
    """Joins the lines of a message, and cuts what nobody would read.

    Args:
        text: the message.

    Returns:
        The message on one line.

    Example:
    >>> one_line("two   lines")
    'two lines'
    """
    text = " ".join(text.split())
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} ... (DEEPNMT_TRACEBACK=1 shows the rest)"
    return text


def tell(verb: str | None, message: str, code: int = 2) -> int:
    """Prints the one line of a failure.

    Args:
        verb: the command that failed, `None` for the tool itself.
        message: what went wrong and what to do.
        code: the exit code.

    Returns:
        The exit code.

    Example:
    >>> tell("train", "no such recipe.")
    2
    """
    name = f"deepnmt {verb}" if verb else "deepnmt"
    print(f"{name}: error: {message}", file=sys.stderr, flush=True)
    return code


def silence_stdout() -> None:
    """Makes the interpreter's last flush of stdout harmless.

    A pipe without a reader or a full disk would fail a second time when
    Python closes its streams, with a traceback of its own.
    """
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def leftovers_ignored() -> Iterator[None]:
    """Keeps quiet about errors in the clean-up after an error.

    HDF5 files on a full disk raise again, once per buffer, when they are taken
    down; the error that matters was told by then. With `DEEPNMT_TRACEBACK`
    they are shown.

    Example:
    >>> with leftovers_ignored():
    ...     pass
    """
    hooks = sys.unraisablehook, sys.excepthook
    if not wants_traceback():
        sys.unraisablehook = lambda unraisable: None
        # Cython prints what it cannot raise through this one as well.
        sys.excepthook = lambda *error: None
    try:
        yield
    except BaseException:
        sys.unraisablehook, sys.excepthook = hooks
        raise
    sys.unraisablehook, sys.excepthook = hooks


def wants_traceback() -> bool:
    """Tells whether `DEEPNMT_TRACEBACK` asks for tracebacks.

    Returns:
        `True` if it is set to anything but `0`.

    Example:
    >>> wants_traceback()
    False
    """
    return os.environ.get("DEEPNMT_TRACEBACK", "0") not in ("", "0")


def _explain_os_error(error: OSError) -> str:
    if error.errno is None:
        return one_line(str(error))
    place = f"{error.filename}: " if error.filename else ""
    reason = os.strerror(error.errno)
    remedy = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        remedy = " Free some space and run the same command again."
    return one_line(f"{place}{reason}.{remedy}")


def _explain_import_error(error: ImportError) -> str | None:
    extra = _EXTRAS.get(error.name.split(".")[0])
    if extra is None:
        return None
    return (
        f"needs the package {error.name}. "
        f'Install it with: pip install "keras_deepnmt[{extra}]"'
    )


def _is_full_disk(error: Exception) -> bool:
    # TensorFlow and ArrayRecord report a full disk in classes of their own.
    return os.strerror(errno.ENOSPC) in str(error)
