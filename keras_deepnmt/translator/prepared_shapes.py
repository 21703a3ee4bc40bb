"""Batch shapes that are compiled while batches of other shapes are searched."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor


class PreparedShapes:
    """The shapes `(rows, positions)` that a search has been compiled for.

    Args:
        is_compiled: whether the search is compiled. If not, nothing is
            prepared, and every batch has the shape that it needs.
    """

    def __init__(self, is_compiled: bool):
        self._is_compiled = is_compiled
        self._shapes: dict[tuple[int, int], Future | None] = {}
        # By length, for the batches of a call.
        self._most_rows: dict[int, int] = {}
        self._thread: ThreadPoolExecutor | None = None

    def prepare(
        self, shape: tuple[int, int], compile_it: Callable[[], None]
    ) -> None:
        """Calls a function in another thread, unless the shape is known."""
        if not self._is_compiled or shape in self._shapes:
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

    def plan(self, shapes: Iterable[tuple[int, int]]) -> None:
        """Notes the shapes that the batches of a call would have."""
        self._most_rows = {}
        for rows, length in shapes:
            most = self._most_rows.get(length, 0)
            self._most_rows[length] = max(rows, most)

    def fitting(self, rows: int, length: int) -> int:
        """Returns the number of rows to search a batch with.

        It is that of the largest batch of the call with the same length: more
        rows of padding cost less than another compilation. It does not depend
        on what was searched before, so that a continued run compiles nothing.
        """
        if not self._is_compiled:
            return rows
        return max(rows, self._most_rows.get(length, 0))
