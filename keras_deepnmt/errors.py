"""What ends a command that is no fault of the program."""


class UserError(ValueError):
    """Says in one line what a user's file, recipe or folder lacks.

    The command line prints the message without a traceback and exits with
    code 2. The message names the place (file and line where there is one), the
    rule, what was received and the remedy.

    Example:
    >>> raise UserError("train.de, line 3: not UTF-8.")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: train.de, line 3: not UTF-8.
    """


class Terminated(KeyboardInterrupt):
    """Raised where SIGTERM arrives, as `KeyboardInterrupt` is by Ctrl-C.

    Example:
    >>> issubclass(Terminated, Exception)
    False
    """
