"""Bounds for how many shapes a model is compiled."""

import math
from collections.abc import Sequence

from keras_deepnmt.xla import tuned

Sizes = tuple[int, ...]


class FewShapes:
    """The shapes that a model is compiled for, since each keeps memory.

    The first `tuned.MOST_PROGRAMS` shapes are used as they come. A later one is
    padded to the smallest of those in use that has room for it and is at most
    `tuned.MUCH_LARGER_SHAPE` times as large. Where there is none, a plain graph
    computes it.

    Attributes:
        used: the shapes in use, each with the name of what it is used for.
            Shapes of one name take the place of each other.
    """

    def __init__(self):
        self.used: list[tuple[Sizes, str]] = []

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another shape."""
        return len(self.used) >= tuned.MOST_PROGRAMS

    def copy(self) -> "FewShapes":
        """Returns one with the same shapes, to which others may be added."""
        shapes = FewShapes()
        shapes.used = list(self.used)
        return shapes

    def choose(self, shape: Sequence[int], name: str) -> Sizes:
        """Returns the shape that a batch is to be padded to."""
        shape = tuple(shape)
        if not self.is_full or (shape, name) in self.used:
            return shape
        most = tuned.MUCH_LARGER_SHAPE * math.prod(shape)
        larger = [
            used
            for used, used_for in self.used
            if used_for == name
            and all(a <= b for a, b in zip(shape, used, strict=True))
            and math.prod(used) <= most
        ]
        return min(larger, key=math.prod, default=shape)

    def use(
        self, shape: Sequence[int], name: str, has_plain: bool = True
    ) -> bool:
        """Returns whether a shape may be compiled, which it then is.

        It always is if there is no plain graph that could take its place.
        """
        key = (tuple(shape), name)
        if key in self.used:
            return True
        if self.is_full and has_plain:
            return False
        self.used.append(key)
        return True
