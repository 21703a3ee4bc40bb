"""Exceptions that end a command but are not bugs."""


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


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, as `KeyboardInterrupt` is on Ctrl-C.

    Example:
    >>> issubclass(Terminated, Exception)
    False
    """
