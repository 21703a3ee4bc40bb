"""Reads recipe files and checks them against the schema."""

import dataclasses
import difflib
import fnmatch
import types
import typing
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import write_text
from keras_deepnmt.recipes.schema import Recipe


def list_recipes(pattern: str = "*") -> list[str]:
    """Lists the bundled recipes.

    Args:
        pattern: a name with wildcards, such as `"transformer_*"`.

    Returns:
        Sorted list of names for `load_recipe`.

    Example:
    >>> "transformer_tiny.demo_de_en" in list_recipes()
    True
    """
    files = [file.name for file in _bundled_recipes().iterdir()]
    names = [f.removesuffix(".yaml") for f in files if f.endswith(".yaml")]
    return sorted(fnmatch.filter(names, pattern))


def load_recipe(
    recipe: str | Path, overrides: Mapping[str, Any] | None = None
) -> Recipe:
    """Reads a bundled recipe or a recipe file.

    Args:
        recipe: a name from `list_recipes()`, or the path of a YAML file.
        overrides: values that replace the file's, by dotted key, such as
            `{"training.steps": 100}`.

    Returns:
        The recipe, with all defaults filled in.

    Raises:
        UserError: if there is no such recipe, or a key is unknown (the most
            similar known key is suggested), missing or of the wrong type. The
            message names the file and the line.

    Example:
    >>> load_recipe("transformer_tiny.multi30k_en_de", {"seed": 7}).seed
    7
    """
    place, text = _read(str(recipe))
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise UserError(f"{place}{line}: not YAML: {problem}.") from error
    lines = _key_lines(node, place)
    content = content if isinstance(content, dict) else {}
    for key, value in (overrides or {}).items():
        _override(content, key, value)
        lines[key] = None
    return _Checker(place, lines).check(Recipe, content)


def save_recipe(
    recipe: Recipe, file: Path, resolved: Mapping[str, Any]
) -> None:
    """Writes a recipe with all defaults filled in.

    `load_recipe` reads it back as an equal recipe. `resolved` is stored with
    it: the versions and the hashes of the data that the run uses.
    """
    content = recipe_content(recipe)
    content["resolved"] = dict(resolved)
    write_text(
        file, yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    )


def recipe_content(recipe: Recipe) -> dict[str, Any]:
    """Converts a recipe to dictionaries, lists and values for YAML.

    `resolved` is left out.
    """
    content = _plain(dataclasses.asdict(recipe))
    content.pop("resolved")
    return content


def flatten_recipe(recipe: Recipe) -> dict[str, Any]:
    """Returns the values of a recipe by dotted key.

    For instance `{"training.steps": 8000, ...}`.
    """
    flat = {}

    def visit(prefix, value):
        if isinstance(value, dict) and value:
            for key, item in value.items():
                visit(f"{prefix}.{key}" if prefix else key, item)
        else:
            flat[prefix] = value

    visit("", recipe_content(recipe))
    return flat


def _bundled_recipes():
    return resources.files(__package__) / "files"


def _read(recipe):
    if recipe in (names := list_recipes()):
        file = _bundled_recipes() / f"{recipe}.yaml"
        return file.name, file.read_text(encoding="utf-8")
    if not Path(recipe).is_file():
        near = difflib.get_close_matches(recipe, names, n=1, cutoff=0.4)
        hint = f'did you mean "{near[0]}"?' if near else f"there are {names}."
        raise UserError(
            f'"{recipe}" is neither a file nor a bundled recipe; {hint}'
        )
    try:
        return recipe, Path(recipe).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{recipe}: not UTF-8 at byte {error.start}."
        ) from error


def _key_lines(node, place, prefix=""):
    """Returns the line of each key of a YAML document, by dotted key."""
    lines = {}
    if isinstance(node, yaml.MappingNode):
        items = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        items = [(str(i), item, item) for i, item in enumerate(node.value)]
    else:
        items = []
    for name, at, value in items:
        key = _join(prefix, name)
        line = at.start_mark.line + 1
        if key in lines:
            raise UserError(
                f"{place}, line {line}: `{key}` is given twice, first in line "
                f"{lines[key]}."
            )
        lines[key] = line
        lines |= _key_lines(value, place, key)
    return lines


def _override(content, key, value):
    *sections, name = key.split(".")
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            raise UserError(f"`{key}`: `{section}` is a value and has no keys.")
    content[name] = value


class _Checker:
    """Converts the content of a YAML file to dataclasses, or reports errors."""

    def __init__(self, place, lines):
        self.place = place
        self.lines = lines

    def check(self, kind, content, path=""):
        if not isinstance(content, dict):
            self.fail(path, f"must hold keys and values. Received: {content!r}")
        known = {field.name: field for field in dataclasses.fields(kind)}
        hints = typing.get_type_hints(kind)
        for key in content:
            if key not in known:
                self.fail_unknown(path, str(key), known)
        values = {
            name: self.convert(hints[name], content[name], _join(path, name))
            for name in known
            if name in content
        }
        for name, field in known.items():
            if name not in values and _is_required(field):
                self.fail(_join(path, name), "is missing")
        try:
            return kind(**values)
        except ValueError as error:
            self.fail(
                self.key_in_message(path, values, str(error)), f": {error}"
            )

    def convert(self, hint, value, path):
        arguments = typing.get_args(hint)
        if isinstance(hint, types.UnionType) and value is None:
            return None
        for option in (hint, *arguments):
            if dataclasses.is_dataclass(option) and isinstance(value, dict):
                return self.check(option, value, path)
        inner = next(
            (a for a in arguments if dataclasses.is_dataclass(a)), None
        )
        if dataclasses.is_dataclass(hint):
            return self.check(hint, value, path)
        if inner is not None and isinstance(value, list):
            items = [
                self.check(inner, item, _join(path, i))
                for i, item in enumerate(value)
            ]
            return tuple(items) if typing.get_origin(hint) is tuple else items
        return self.typed(hint, value, path)

    def typed(self, hint, value, path):
        import jsonargparse

        parser = jsonargparse.ArgumentParser(exit_on_error=False)
        parser.add_argument("--value", type=hint)
        try:
            # jsonargparse accepts None for every type.
            if value is not None:
                return parser.parse_object({"value": value}).value
        except jsonargparse.ArgumentError:
            pass
        self.fail(path, f"must be {_describe_type(hint)}. Received: {value!r}")

    def key_in_message(self, path, values, message):
        """Returns the key that an error message of a value check names."""
        for name in values:
            if f"`{name}`" in message:
                return _join(path, name)
        return path

    def fail_unknown(self, path, key, known):
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        possible = ", ".join(name for name in known if name != "resolved")
        hint = (
            f"did you mean `{_join(path, near[0])}`?"
            if near
            else f"possible here: {possible}."
        )
        self.fail(_join(path, key), f"is unknown; {hint}")

    def fail(self, path, rule):
        line = self.lines.get(path)
        where = f"{self.place}, line {line}" if line else self.place
        name = f"`{path}`" if path else "the recipe"
        text = " ".join(f"{where}: {name} {rule}".split())
        raise UserError(text.replace(" : ", ": ")) from None


def _is_required(field):
    return (
        field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    )


def _join(path, name):
    return f"{path}.{name}" if path else str(name)


def _describe_type(hint):
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    name = getattr(hint, "__name__", None)
    return name if name and not typing.get_args(hint) else str(hint)


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
