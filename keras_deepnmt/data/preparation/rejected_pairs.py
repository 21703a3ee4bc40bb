"""Writes the pairs that `prepare` leaves out to a file, with the reasons."""

import os
from pathlib import Path

from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import atomic_file

_COLUMNS = ("split", "corpus", "line", "reason", "source", "target")
_AS_SPACES = str.maketrans("\t\n\r", "   ")


class RejectedPairs:
    """A table of the pairs that were left out, with tabs between its columns.

    The columns are the split, the name of the corpus, the number of the line in
    both its files (from 1), the reason and the two texts. The file appears when
    it is complete, also if the work ends with a `UserError`, and replaces an
    older one. Without a file nothing is written. The file must not be in the
    prepared folder, `output_dir`, since that appears as a whole.
    """

    def __init__(self, file: str | Path | None, output_dir: str | Path):
        self._path = None if file is None else Path(file)
        if self._path is not None:
            _check_place(self._path, Path(output_dir))
        self._temporary = None
        self._file = None

    def __enter__(self) -> "RejectedPairs":
        if self._path is not None:
            self._temporary = atomic_file(self._path)
            try:
                self._file = open(
                    self._temporary.__enter__(),
                    "w",
                    encoding="utf-8",
                    newline="\n",
                )
            except OSError as error:
                raise UserError(
                    f"{self._path}: cannot be written ({error.strerror})."
                ) from error
            self._file.write("\t".join(_COLUMNS) + "\n")
        return self

    def __exit__(self, kind, error, traceback):
        if self._file is not None:
            self._file.close()
            if isinstance(error, UserError):
                kind = error = traceback = None
            self._temporary.__exit__(kind, error, traceback)

    def add(
        self,
        split: str,
        corpus: CorpusFiles,
        line: int,
        reason: str,
        source: str,
        target: str,
    ):
        """Writes a row. Tabs and line ends within a text become spaces."""
        if self._file is not None:
            values = (split, corpus.name, str(line), reason, source, target)
            row = "\t".join(value.translate(_AS_SPACES) for value in values)
            self._file.write(row + "\n")


def _check_place(path: Path, output_dir: Path):
    if Path(os.path.abspath(path)).is_relative_to(os.path.abspath(output_dir)):
        raise UserError(
            f"{path}: the file of rejected pairs must be outside the prepared "
            f"folder {output_dir}. Give another path."
        )
