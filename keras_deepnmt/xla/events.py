"""The event that XLA is about to compile a program of a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LISTENERS = "_compilation_listeners"


@dataclass(frozen=True)
class Compilation:
    """A compilation that is about to begin. It takes seconds to minutes.

    Attributes:
        purpose: what the program is for: `"training"`, `"validation"`,
            `"search"`, or the name of a function.
        shape: for training and validation the rows of a replica, the source
            length and the target length, else the shape of the first array.
        number: for training and validation, how many shapes there have been
            with this one.

    Example:
    >>> Compilation("search", (32, 24)).describe()
    'compiling the search for 32 x 24 tokens'
    >>> Compilation("training", (64, 24, 28), number=3).describe(expected=8)
    'compiling training shape 3 of 8: 64 x 24 -> 28 tokens'
    """

    purpose: str
    shape: tuple[int, ...]
    number: int | None = None

    def describe(self, expected: int | None = None, replicas: int = 1) -> str:
        """Describes the compilation in one line.

        `expected` is the number of shapes that the model will meet. Each of the
        `replicas` has the rows of the shape.
        """
        if self.number is None:
            shape = " x ".join(map(str, self.shape))
            return f"compiling the {self.purpose} for {shape} tokens"
        rows, source_length, target_length = self.shape
        of_all = f" of {expected}" if expected else ""
        return (
            f"compiling {self.purpose} shape {self.number}{of_all}: "
            f"{rows * replicas} x {source_length} -> {target_length} tokens"
        )


def listen(
    model: Any,
    listener: Callable[[Compilation], None],
    name: str | None = None,
) -> None:
    """Calls a function before each compilation for a model.

    A listener with a `name` replaces an earlier one of the same name and model;
    otherwise the earlier ones stay.
    """
    listeners = vars(model).get(_LISTENERS, ())
    others = tuple(x for x in listeners if name is None or x[0] != name)
    # Not by Keras' own method, which would track it as a part of the model.
    object.__setattr__(model, _LISTENERS, (*others, (name, listener)))


def announce(model: Any, compilation: Compilation) -> None:
    """Calls the listeners of a model."""
    for _, listener in getattr(model, _LISTENERS, ()):
        listener(compilation)
