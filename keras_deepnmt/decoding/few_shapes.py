"""Bounds for how many shapes a model is compiled."""

import math
from collections.abc import Sequence

from keras_deepnmt.xla import tuned

Sizes = tuple[int, ...]


class FewShapes:
    """The shapes that a model is compiled for, since each keeps memory.

    The first `tuned.MOST_PROGRAMS` shapes are used as they come. A later one is
    padded to the smallest of those in use that has room for it. Where that is
    more than `tuned.MUCH_LARGER_SHAPE` times as large, a plain graph computes
    it. Without plain graphs, as on JAX, it is padded to a shape of any size,
    and used itself if none has room.

    Args:
        has_plain: whether a plain graph can compute other shapes.

    Attributes:
        used: the shapes in use, each with the name of what it is used for.
            Shapes of one name take the place of each other.

    Example:
    >>> shapes = FewShapes(has_plain=True)
    >>> shapes.use((4, 64), "search"), shapes.choose((4, 16), "search")
    (True, (4, 16))
    """

    def __init__(self, has_plain: bool):
        self._has_plain = has_plain
        self.used: list[tuple[Sizes, str]] = []

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another shape."""
        return len(self.used) >= tuned.MOST_PROGRAMS

    def choose(self, shape: Sequence[int], name: str) -> Sizes:
        """Returns the shape that a batch is to be padded to."""
        shape = tuple(shape)
        if not self.is_full or (shape, name) in self.used:
            return shape
        most = tuned.MUCH_LARGER_SHAPE if self._has_plain else math.inf
        larger = [
            used
            for used, used_for in self.used
            if used_for == name
            and all(a <= b for a, b in zip(shape, used, strict=True))
            and math.prod(used) <= most * math.prod(shape)
        ]
        return min(larger, key=math.prod, default=shape)

    def use(self, shape: Sequence[int], name: str) -> bool:
        """Returns whether a shape may be compiled, which it then is."""
        key = (tuple(shape), name)
        if key in self.used:
            return True
        if self.is_full and self._has_plain:
            return False
        self.used.append(key)
        return True
