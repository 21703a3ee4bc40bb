"""Files that have a line for each sentence to translate."""

import itertools
from pathlib import Path

from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.errors import UserError


class GivenLines:
    """The lines of a file, read as the sentences are.

    Args:
        file: the file, plain or gzipped; `None` if it was not given.
    """

    def __init__(self, file: str | None):
        self._file = file
        self._lines = iter(()) if file is None else iter(LineReader(file))
        self._number = 0

    def take(self, number: int) -> list[str] | None:
        """Returns the next lines; `None` without a file.

        Raises:
            UserError: if there are not as many.
        """
        if self._file is None:
            return None
        lines = [
            decode_line(line, Path(self._file), place)
            for place, line in enumerate(
                itertools.islice(self._lines, number), start=self._number + 1
            )
        ]
        self._number += len(lines)
        if len(lines) < number:
            raise UserError(
                f"{self._file}: must have a line for each sentence. Received: "
                f"{self._number} lines, fewer than there are sentences."
            )
        return lines

    def check_end(self) -> None:
        """Refuses lines that are left after the last sentence.

        Raises:
            UserError: if there are any.
        """
        if next(self._lines, None) is not None:
            raise UserError(
                f"{self._file}: must have a line for each sentence. Received: "
                f"more than the {self._number} lines of the input."
            )
