"""Checks the content of a recipe file against the schema."""

import dataclasses
import difflib
import re
import types
import typing

from keras_deepnmt.errors import UserError, UserErrors

# Takes the place of a required value that is wrong, so that the others of its
# section are checked too.
_STAND_INS = {int: 1, float: 0.5, str: "-"}
_WRONG = object()
_UNIONS = (typing.Union, types.UnionType)


def is_required(field: dataclasses.Field) -> bool:
    """Whether a key must be in a recipe file."""
    return (
        field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
        and "when_left_out" not in field.metadata
    )


class Position(typing.NamedTuple):
    """Where a key stands: the file as errors name it, and the line."""

    place: str
    line: int


class RecipeChecker:
    """Converts the content of a YAML file to dataclasses.

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

    def check(self, kind: type, content, path: str = ""):
        """Converts a section to its dataclass and adds its mistakes.

        If there are mistakes, the result is what is left without them, or
        meaningless.
        """
        if not isinstance(content, dict):
            self.add(path, f"must hold keys and values. Received: {content!r}")
            return _WRONG
        known = {field.name: field for field in dataclasses.fields(kind)}
        hints = typing.get_type_hints(kind)
        # A message about one of these keys may only follow from a mistake that
        # is reported already.
        wrong = {
            self._add_unknown(path, str(key), known)
            for key in content
            if key not in known
        }
        values = {}
        for name, field in known.items():
            if name in content:
                place, before = join(path, name), len(self._mistakes)
                if "sections" in field.metadata:
                    value = self._check_named(
                        field.metadata["sections"], content[name], place
                    )
                else:
                    value = self._convert(hints[name], content[name], place)
                if value is not _WRONG:
                    values[name] = value
                if len(self._mistakes) == before:
                    continue
            elif not is_required(field):
                continue
            elif name not in wrong:
                remedy = field.metadata.get("remedy", "")
                self.add(join(path, name), f"is missing{remedy}")
            wrong.add(name)
        return self._make(kind, values, wrong, path)

    def _check_named(self, kinds, content, path):
        """Checks a mapping of sections; those with a null are left out."""
        if not isinstance(content, dict):
            self.add(
                path, f"must be {describe_type(dict)}. Received: {content!r}"
            )
            return _WRONG
        return {
            name: self._convert(kinds.get(name, dict), item, join(path, name))
            for name, item in content.items()
            if item is not None
        }

    def _make(self, kind, values, wrong, path):
        """Makes a dataclass and adds what its own checks find."""
        hints = typing.get_type_hints(kind)
        required = {
            field.name
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        }
        while True:
            for name in required - values.keys():
                if hints[name] not in _STAND_INS:
                    return _WRONG
                values[name] = _STAND_INS[hints[name]]
            try:
                made = kind(**values)
            except ValueError as error:
                message = str(error)
            else:
                return made
            if any(
                re.search(rf"\b{name}\b", message) for name in wrong if name
            ):
                return _WRONG
            name = next((key for key in values if f"`{key}`" in message), None)
            self.add(join(path, name) if name else path, f": {message}")
            if name is None:
                return _WRONG
            # Without it, the next mistake of this section is found.
            wrong.add(name)
            del values[name]

    def _convert(self, hint, value, path):
        if dataclasses.is_dataclass(hint):
            return self.check(hint, value, path)
        arguments, origin = typing.get_args(hint), typing.get_origin(hint)
        if origin in _UNIONS:
            if value is None and type(None) in arguments:
                return None
            for option in arguments:
                if dataclasses.is_dataclass(option) and isinstance(value, dict):
                    return self.check(option, value, path)
        elif origin in (list, tuple) and isinstance(value, list):
            inner, *_ = arguments
            if dataclasses.is_dataclass(inner):
                items = [
                    self.check(inner, item, join(path, i))
                    for i, item in enumerate(value)
                ]
                return origin(item for item in items if item is not _WRONG)
        return self._typed(hint, value, path)

    def _typed(self, hint, value, path):
        import jsonargparse

        parser = jsonargparse.ArgumentParser(exit_on_error=False)
        parser.add_argument("--value", type=hint)
        try:
            # jsonargparse accepts None for every type.
            if value is not None:
                return parser.parse_object({"value": value}).value
        except jsonargparse.ArgumentError:
            pass
        self.add(path, f"must be {describe_type(hint)}. Received: {value!r}")
        return _WRONG

    def _add_unknown(self, path, key, known):
        """Adds an unknown key; returns the known one that may be meant."""
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        possible = ", ".join(name for name in known if name != "resolved")
        hint = (
            f"did you mean `{join(path, near[0])}`?"
            if near
            else f"possible here: {possible}."
        )
        self.add(join(path, key), f"is unknown; {hint}")
        return near[0] if near else None


def join(path: str, name: object) -> str:
    """Returns a dotted key.

    Example:
    >>> join("training", "steps")
    'training.steps'
    """
    return f"{path}.{name}" if path else str(name)


def describe_type(hint) -> str:
    """Returns how an error message calls a type.

    Example:
    >>> describe_type(typing.Literal["bpe", "unigram"])
    "'bpe' or 'unigram'"
    >>> describe_type(typing.Literal["auto"] | None)
    "'auto' or null"
    """
    if hint is type(None):
        return "null"
    arguments, origin = typing.get_args(hint), typing.get_origin(hint)
    if origin is typing.Literal:
        return " or ".join(map(repr, arguments))
    if origin in _UNIONS:
        return " or ".join(map(describe_type, arguments))
    if origin in (list, tuple):
        entry = describe_type(arguments[0])
        return (
            "a list, in brackets or with `- ` before each entry, where each "
            f"entry is {entry}"
        )
    if dict in (hint, origin) or dataclasses.is_dataclass(hint):
        return "a mapping of keys to values"
    name = getattr(hint, "__name__", None)
    return name if name and not arguments else str(hint)
