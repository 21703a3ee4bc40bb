"""Warnings that name the lines of the input that they are about."""

import logging
from collections.abc import Mapping, Sequence

_SHOWN = 5
_logger = logging.getLogger(__name__)


class LineWarnings:
    """Collects line numbers, and prints one warning for all with one fault.

    A long input may have many such lines, so that a warning for each would
    hide the others. `name` is the name of the input, if it has one. `lines` are
    the numbers of its lines that have a text, if not all of them have one.
    `most_numbers` are kept of the lines with a fault; a warning has fewer.
    """

    def __init__(
        self,
        name: str | None = None,
        lines: Sequence[int] | None = None,
        most_numbers: int = _SHOWN,
    ):
        self._most_numbers = most_numbers
        self.name = name
        self._numbers = lines
        self._lines = {}

    def __enter__(self) -> "LineWarnings":
        return self

    def __exit__(self, *error) -> None:
        # Also after an error or Ctrl-C: the lines before it were printed.
        self.print()

    def add(self, number: int, fault: str) -> None:
        """Adds a text by its number, from 1; `fault` ends the warning."""
        if self._numbers is not None:
            number = self._numbers[number - 1]
        shown, count = self._lines.get(fault, ([], 0))
        if len(shown) < self._most_numbers:
            shown = [*shown, number]
        self._lines[fault] = shown, count + 1

    @property
    def state(self) -> dict[str, tuple[list[int], int]]:
        """The warnings so far, in terms of JSON."""
        return dict(self._lines)

    @state.setter
    def state(self, state: Mapping[str, tuple[list[int], int]]) -> None:
        self._lines = {fault: tuple(lines) for fault, lines in state.items()}

    def print(self) -> None:
        """Prints the warnings to stderr, and forgets them."""
        place = f"{self.name}, " if self.name else ""
        for fault, (shown, count) in self._lines.items():
            _logger.warning(
                "%s%s: %s", place, describe_lines(shown[:_SHOWN], count), fault
            )
        self._lines = {}


def describe_lines(numbers: Sequence[int], count: int) -> str:
    """Names lines, of which only the first ones need be given."""
    names = [str(number) for number in numbers]
    if count > len(numbers):
        names.append(f"{count - len(numbers)} more")
    if len(names) == 1:
        return f"line {names[0]}"
    return f"lines {', '.join(names[:-1])} and {names[-1]}"
