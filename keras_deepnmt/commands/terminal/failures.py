"""Reports errors as one line on stderr: the user's mistakes, and bugs."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

from keras_deepnmt.commands.terminal.standard_streams import drop_output
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.own_code.loading import describe_own_error, error_place
from keras_deepnmt.terminal_text import print_line

_MAX_CHARACTERS = 600
USER_ERROR = 2
INTERNAL_ERROR = 1
# Optional packages and the extra of this package that installs them.
_EXTRAS = {
    "ctranslate2": "ctranslate2",
    "errant": "errant",
    "fastapi": "serve",
    "grpc": "serve",
    "jax": "jax",
    "matplotlib": "analysis",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "prometheus_client": "serve",
    "ray": "ray",
    "rouge_score": "rouge",
    "shtab": "completion",
    "tensorflow_serving": "serve",
    "tf2onnx": "onnx",
    "torch": "benchmark",
    "uvicorn": "serve",
}


def explain(error: Exception) -> str | None:
    """Returns one line for an error that the user can fix, `None` for a bug.

    Several mistakes are one line each. The user can fix a `UserError`, what the
    system refuses (files, disks, memory), a missing optional package and errors
    in the user's own code, whose line is named. Every other exception, a plain
    `ValueError` too, is a bug of this package.
    """
    if isinstance(error, UserErrors):
        return "\n".join(map(one_line, error.lines))
    if isinstance(error, UserError) or _is_full_disk(error):
        place = error_place(error)
        text = one_line(str(error))
        return text if place is None or place in text else f"{text} ({place})"
    if isinstance(error, OSError):
        return _explain_os_error(error)
    if isinstance(error, ImportError) and error.name:
        missing = _explain_import_error(error)
        if missing is not None:
            return missing
    if isinstance(error, UnicodeEncodeError):
        return _explain_encode_error(error)
    if _is_out_of_memory(error):
        return (
            "there is not enough memory. Use smaller batches (--batch-size, "
            "or training.batch_tokens in the recipe), fewer beams or a smaller "
            "model."
        )
    described = describe_own_error(error)
    return None if described is None else one_line(described)


def describe_bug(error: Exception) -> str:
    """Returns one line for an exception that no user should ever see."""
    name, message = type(error).__name__, str(error).strip().rstrip(".")
    described = f"{name}: {message}" if message else name
    return (
        f"{one_line(described)}. This is a bug in keras_deepnmt, not a mistake "
        "of yours. Please report it with the output of `deepnmt doctor` and "
        "with the traceback, which DEEPNMT_TRACEBACK=1 shows."
    )


def one_line(text: str) -> str:
    """Joins the lines of a message and truncates it at 600 characters."""
    text = " ".join(text.split())
    if len(text) > _MAX_CHARACTERS:
        text = (
            f"{text[:_MAX_CHARACTERS]} ... (DEEPNMT_TRACEBACK=1 shows the rest)"
        )
    return text


def print_error(verb: str | None, message: str, code: int = USER_ERROR) -> int:
    """Prints an error message to stderr and returns the exit code.

    `verb` is the command that failed, `None` if no command was run.
    """
    name = f"deepnmt {verb}" if verb else "deepnmt"
    kind = "internal error" if code == INTERNAL_ERROR else "error"
    print_line(f"{name}: {kind}: {message}")
    return code


def silence_stdout() -> None:
    """Flushes stdout; if that fails, redirects it to the null device.

    Otherwise a closed pipe or a full disk would cause a second error, with a
    traceback, when the interpreter flushes stdout at exit.
    """
    try:
        sys.stdout.flush()
    except OSError:
        drop_output(sys.stdout.fileno())


@contextlib.contextmanager
def ignore_cleanup_errors() -> Iterator[None]:
    """Hides errors that are raised while objects are deleted after an error.

    On a full disk HDF5 files raise again for every buffer when they are
    deleted, after the first error was reported. With `DEEPNMT_TRACEBACK` these
    errors are shown.
    """
    hooks = sys.unraisablehook, sys.excepthook
    if not wants_traceback():
        sys.unraisablehook = lambda unraisable: None
        # Cython reports errors that it cannot raise through this hook too.
        sys.excepthook = lambda *error: None
    try:
        yield
    except BaseException:
        sys.unraisablehook, sys.excepthook = hooks
        raise
    sys.unraisablehook, sys.excepthook = hooks


def wants_traceback() -> bool:
    """Returns whether `DEEPNMT_TRACEBACK` is set to anything but `0`."""
    return os.environ.get("DEEPNMT_TRACEBACK", "0") not in ("", "0")


def _explain_os_error(error: OSError) -> str:
    if error.errno is None:
        return one_line(str(error))
    path = f"{error.filename}: " if error.filename else ""
    reason = os.strerror(error.errno)
    remedy = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        remedy = " Free some space and run the same command again."
    return one_line(f"{path}{reason}.{remedy}")


def _explain_import_error(error: ImportError) -> str | None:
    extra = _EXTRAS.get(error.name.split(".")[0])
    if extra is None:
        return None
    return (
        f"needs the package {error.name}. "
        f'Install it with: pip install "keras_deepnmt[{extra}]"'
    )


def _explain_encode_error(error: UnicodeEncodeError) -> str | None:
    if error.encoding.lower().replace("-", "") == "utf8":
        return None
    characters = error.object[error.start : error.end]
    return one_line(
        f"the encoding {error.encoding} of the output has no {characters!r}. "
        "Set the environment variable PYTHONIOENCODING=utf-8."
    )


def _is_full_disk(error: Exception) -> bool:
    # TensorFlow and ArrayRecord have their own exception classes for it.
    return not isinstance(error, OSError) and os.strerror(errno.ENOSPC) in str(
        error
    )


def _is_out_of_memory(error: Exception) -> bool:
    # TensorFlow and JAX have their own exception classes for it.
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "ResourceExhaustedError"
        or "RESOURCE_EXHAUSTED" in str(error)
    )
