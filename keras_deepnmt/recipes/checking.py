"""Reports the mistakes in recipe files, with the file and line of each."""

from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.validation import find_mistakes


class Position(NamedTuple):
    """Where a key stands: the file as errors name it, and the line."""

    place: str
    line: int


class RecipeChecker:
    """Checks the content of a YAML file.

    `place` is the file as errors name it. All mistakes are collected:
    `raise_mistakes` raises them together.

    Attributes:
        positions: maps each dotted key to its position, or to `None` if it is
            in no file. With `extends` there are several files.
    """

    def __init__(self, place: str):
        self.place = place
        self.positions: dict[str, Position | None] = {}
        self._mistakes: list[tuple[Position, str]] = []

    def add(
        self, path: str, rule: str, position: Position | None = None
    ) -> None:
        """Adds the mistake that the key `path` does not follow a rule."""
        position = position or self._position_of(path)
        where = self.place
        if position is not None:
            where = f"{position.place}, line {position.line}"
        name = f"`{path}`" if path else "the recipe"
        text = " ".join(f"{where}: {name} {rule}".split())
        text = text.replace(" : ", ": ")
        self._mistakes.append((position, text))

    def _position_of(self, path):
        """The position of a key, or of its section if the key is missing."""
        if path in self.positions or "." not in path:
            return self.positions.get(path)
        return self._position_of(path.rpartition(".")[0])

    def raise_mistakes(self) -> None:
        """Raises a `UserError` with one line for each mistake, if any."""

        def order(mistake):
            position, _ = mistake
            if position is None:
                return (2, "", 0)  # in no file
            return (int(position.place != self.place), *position)

        texts = [text for _, text in sorted(self._mistakes, key=order)]
        if len(texts) == 1:
            raise UserError(texts[0])
        if texts:
            raise UserErrors(texts)

    def check(self, kind: type, content: Any) -> Any:
        """Converts the content to a checked dataclass.

        If it has mistakes, they are added and the result is `None`.
        """
        try:
            return TypeAdapter(kind).validate_python(content)
        except ValidationError as error:
            for path, rule in find_mistakes(kind, content, error):
                self.add(".".join(map(str, path)), rule)


def join(path: str, name: object) -> str:
    """Returns a dotted key."""
    return f"{path}.{name}" if path else str(name)
