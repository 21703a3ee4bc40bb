"""Which keys of a recipe may change in a run that has begun.

Each key has one of these classes in the annotation of its field; the keys of a
section without one have that of the section.
"""

import enum
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from keras_deepnmt.recipes.checking import join
from keras_deepnmt.validation import key_of


class Changing(enum.Enum):
    """When a key may change; the value is its text in the list of keys."""

    # No update depends on it.
    FREE = "yes"
    # No update either, but the final model or its scores.
    FINAL = "yes, anew"
    # Updates depend on it.
    ON_REQUEST = "`--allow-changes`"
    # The checkpoints would not fit, or the data would be others.
    FIXED = "no"


_Kind = TypeVar("_Kind")
Free = Annotated[_Kind, Changing.FREE]
OfFinalModel = Annotated[_Kind, Changing.FINAL]
OnRequest = Annotated[_Kind, Changing.ON_REQUEST]
Fixed = Annotated[_Kind, Changing.FIXED]


def changing_of(key: str, kind: type) -> Changing | None:
    """Returns the class of a dotted key of a section.

    `None` if neither the key nor a section around it has one.
    """
    found = None
    for name in key.split("."):
        hint = _hints(kind).get(name)
        marks = [m for m in getattr(hint, "__metadata__", ()) if _is_class(m)]
        found = marks[-1] if marks else found
        kind = _section(hint)
    return found


def cause_of(key: str, kind: type) -> str | None:
    """Returns the key that decides about the default of another, if any."""
    *path, last = key.split(".")
    for name in path:
        kind = _section(_hints(kind).get(name))
    causes = dict(getattr(kind, "causes", {}))
    choice = getattr(kind, "choice", None)
    if choice is not None:
        causes |= dict.fromkeys((*choice.keys(), *choice.others), choice.key)
    return join(".".join(path), causes[last]) if last in causes else None


def _is_class(mark):
    return isinstance(mark, Changing)


def _hints(kind: Any):
    if kind is None:
        return {}
    hints = get_type_hints(kind, include_extras=True)
    return {key_of(name): hint for name, hint in hints.items()}


def _section(hint):
    """Returns the class with fields in a type, such as `X` in `X | None`."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    for part in (hint, *get_args(hint)):
        if isinstance(part, type) and hasattr(part, "__annotations__"):
            return part
    return None
