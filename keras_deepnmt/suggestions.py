"""The known name that a misspelt one may stand for."""

import difflib
from collections.abc import Iterable


def nearest_name(
    name: str, known: Iterable[str], cutoff: float = 0.5
) -> str | None:
    """Returns the known name that is most similar to another one.

    `cutoff` is how similar it must be: 0 for any name, 1 for an equal one. The
    result is `None` if no name is so similar.
    """
    near = difflib.get_close_matches(str(name), list(known), 1, cutoff)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str], quote: str = '"') -> str:
    """Returns a question with the most similar name, for an error message.

    It begins with a space; it is empty if no name is similar. `quote` is the
    mark around the name: a backtick for arguments and keys.
    """
    near = nearest_name(name, known)
    return "" if near is None else f" Did you mean {quote}{near}{quote}?"
