"""Exceptions that end a command but are not bugs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# Exit code of a process that SIGTERM ended: 128 and the number of the signal.
TERMINATED = 143


class UserError(ValueError):
    """Reports in one line what is wrong with a user's file, recipe or folder.

    The command line prints the message without a traceback and exits with
    code 2. The message names the place (file and line if there is one), the
    rule, what was received and the remedy.

    Example:
    >>> raise UserError("train.de, line 3: not UTF-8.")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: train.de, line 3: not UTF-8.
    """


class UserErrors(UserError):
    """Reports several mistakes, in one line each.

    Args:
        lines: the mistakes.

    Example:
    >>> UserErrors(["a.yaml, line 1: ...", "a.yaml, line 2: ..."]).lines
    ('a.yaml, line 1: ...', 'a.yaml, line 2: ...')
    """

    def __init__(self, lines: Iterable[str]):
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


@contextmanager
def refused_values(place: str) -> Iterator[None]:
    """Raises an object's errors about its arguments as a `UserError`.

    For code that makes objects from the values in a file: a value that an
    object refuses is a mistake in the file.

    Args:
        place: names the file or key in the message.

    Example:
    >>> with refused_values("recipe mine, `model`"):
    ...     raise ValueError("`dropout` must lie in [0, 1). Received: 2")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: recipe mine, `model`: `dropout` must ...
    """
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{place}: {message}") from error
    except AttributeError as error:
        raise UserError(
            f"{place}: a value has the wrong type ({error})."
        ) from error


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, as `KeyboardInterrupt` is on Ctrl-C.

    Example:
    >>> issubclass(Terminated, Exception)
    False
    """
