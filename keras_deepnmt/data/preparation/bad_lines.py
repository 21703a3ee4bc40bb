"""Decodes the lines of corpora, and names all that are not UTF-8 at once."""

from pathlib import Path

from keras_deepnmt.data.corpora import undecodable_line

# A message names so many lines; the others are counted.
_NAMED = 10
_REMEDY = (
    "Convert the text to UTF-8, or prepare with errors=skip (`--errors skip`), "
    "which leaves such pairs out, or errors=replace; `--rejected FILE` lists "
    "all of them."
)


class BadLines:
    """Decodes lines as UTF-8 and collects those that cannot be decoded.

    `errors` is that of `PrepareOptions`.
    """

    def __init__(self, errors: str):
        self.errors = errors
        self._named: list[str] = []
        self._counts: dict[Path, int] = {}

    def decode(self, line: bytes, path: Path, number: int) -> str | None:
        """Returns the text of a line, or `None` if its pair is to be left out.

        `path` and `number` (from 1) name the line.
        """
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            self._counts[path] = self._counts.get(path, 0) + 1
            if len(self._named) < _NAMED:
                self._named.append(undecodable_line(error, path, number))
        if self.errors == "replace":
            return line.decode("utf-8", "replace")
        return None

    def describe(self) -> list[str]:
        """Names the first lines and counts the others, in a sentence each."""
        more = sum(self._counts.values()) - len(self._named)
        if not more:
            return list(self._named)
        files = ", ".join(
            f"{path}: {count:,}" for path, count in self._counts.items()
        )
        return [
            *self._named,
            f"{more:,} more lines are not UTF-8 (in all, {files}).",
        ]

    def problems(self) -> list[str]:
        """Returns the error messages, none unless `errors` is strict."""
        if self.errors != "strict" or not self._named:
            return []
        *first, last = self.describe()
        return [*first, f"{last} {_REMEDY}"]

    def warnings(self) -> list[str]:
        """Says what happened to the lines, if there are any."""
        if not self._named:
            return []
        done = {
            "replace": "Bytes that are not UTF-8 were replaced by U+FFFD",
            "skip": "Pairs with bytes that are not UTF-8 were left out",
        }[self.errors]
        return [f"{done}. {' '.join(self.describe())}"]
