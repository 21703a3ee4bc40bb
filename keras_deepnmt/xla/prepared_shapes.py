"""Batch shapes that are compiled while batches of other shapes are searched."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class PreparedShapes:
    """The shapes `(rows, positions)` that a search has been compiled for.

    Args:
        is_compiled: whether the search is compiled. If not, nothing is
            prepared.
    """

    def __init__(self, is_compiled: bool):
        self._is_compiled = is_compiled
        self._shapes: dict[tuple[int, int], Future | None] = {}
        self._thread: ThreadPoolExecutor | None = None

    def is_known(self, shape: tuple[int, int]) -> bool:
        """Whether a shape needs no preparation."""
        return not self._is_compiled or shape in self._shapes

    def prepare(
        self, shape: tuple[int, int], compile_it: Callable[[], None]
    ) -> None:
        """Calls a function in another thread, unless the shape is known."""
        if self.is_known(shape):
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "compile")
        self._shapes[shape] = self._thread.submit(compile_it)

    def wait_for(self, shape: tuple[int, int]) -> None:
        """Waits until a shape that was prepared is compiled.

        An error is not raised: the search of that shape will raise it.
        """
        if not self._is_compiled:
            return
        future = self._shapes.setdefault(shape, None)
        if future is not None:
            future.exception()
            self._shapes[shape] = None
