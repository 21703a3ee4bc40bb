"""Reads the content of a recipe, together with the recipes that it extends."""

import dataclasses
from pathlib import Path
from typing import Any

import yaml

from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.code_file import located
from keras_deepnmt.recipes.bundled import bundled_names, bundled_text
from keras_deepnmt.recipes.checking import Position, RecipeChecker, join
from keras_deepnmt.recipes.earlier_keys import move_earlier_keys
from keras_deepnmt.recipes.schema import Recipe, sections_of
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.yaml_files import parse_yaml, read_yaml

# Keys that belong to one file alone.
_OWN_KEYS = ("name", "resolved", "extends")


def read_content(recipe: str, checker: RecipeChecker) -> Any:
    """Reads a recipe and merges it with the recipe that it extends.

    `recipe` is the name of a bundled recipe or a file. The checker learns the
    file and line of each key. The key `extends` of the recipe itself stays.
    """
    content, checker.positions = _with_base(_find(recipe, Path()), checker, ())
    return content


def _with_base(file, checker, chain):
    """Returns the content and the positions of its keys.

    `chain` are the files that led to this one by `extends`.
    """
    content, positions = _parse(file, checker)
    base = content.get("extends") if isinstance(content, dict) else None
    if not isinstance(base, str):  # a wrong type is refused with the others
        return content, positions
    line = positions["extends"].line if "extends" in positions else 1
    where = f"{file.place}, line {line}: `extends`: "
    try:
        base_file = _find(base, file.folder)
    except UserError as error:
        raise UserError(f"{where}{error}") from error
    chain = (*chain, file)
    if base_file in chain:
        circle = " -> ".join(f.place for f in (*chain, base_file))
        raise UserError(
            f"{where}a recipe must not extend itself. Received: {circle}"
        )
    base_content, base_positions = _with_base(base_file, checker, chain)
    if not isinstance(base_content, dict):
        rule = f"must hold keys and values. Received: {base_content!r}"
        checker.add("", rule, Position(base_file.place, 1))
        return content, positions
    taken = {k: v for k, v in base_content.items() if k not in _OWN_KEYS}
    replaced = [*_OWN_KEYS]
    content = _merge(Recipe, taken, content, "", replaced)
    kept = {
        key: position
        for key, position in base_positions.items()
        if not any(key == r or key.startswith(f"{r}.") for r in replaced)
    }
    return content, {**kept, **positions}


def _merge(kind, base, own, path, replaced):
    """Merges two contents of one section; `own` has precedence.

    Sections and mappings are merged key by key, anything else is replaced.
    With another optimizer, schedule or loss, keys that belong to a certain one
    are not taken over, and neither is an alternative to a key of its own, such
    as `valid_pairs` to `valid`. Their paths are added to `replaced`.
    """
    merged, inner = dict(base), sections_of(kind)
    choice = getattr(kind, "choice", None)
    if choice is not None:
        default = getattr(kind, choice.key)
        before = base.get(choice.key, default)
        if own.get(choice.key, before) != before:
            for key in (*choice.keys(), *choice.others):
                merged.pop(key, None)
                replaced.append(join(path, key))
    for key, value in own.items():
        if value != base.get(key):
            for other in alternatives(kind, key, value):
                if other not in own and merged.pop(other, None) is not None:
                    replaced.append(join(path, other))
    for key, value in own.items():
        before, place = merged.get(key), join(path, str(key))
        both = isinstance(before, dict) and isinstance(value, dict)
        if both and key in inner:
            merged[key] = _merge(inner[key], before, value, place, replaced)
        else:
            replaced.append(place)
            merged[key] = value
    return merged


def alternatives(kind: type | None, key: str, value: Any) -> list[str]:
    """Returns the keys of a section whose place a value of `key` takes."""
    found = getattr(kind, "alternatives", {}) if value else {}
    return list(found.get(key, ()))


@dataclasses.dataclass(frozen=True)
class _RecipeFile:
    """A recipe: its file, `None` if it is bundled, and its name."""

    path: Path | None
    place: str = dataclasses.field(compare=False)
    name: str
    folder: Path = dataclasses.field(compare=False)

    def read(self):
        """Returns the content and its nodes."""
        if self.path is None:
            return parse_yaml(bundled_text(self.name), self.place)
        return read_yaml(self.path, self.place)


def _find(recipe, folder):
    """Finds a bundled recipe, or a file relative to a folder."""
    names = bundled_names()
    if recipe in names:
        return _RecipeFile(None, f"{recipe}.yaml", recipe, folder)
    file = folder / recipe
    if file.is_file():
        # Resolved, so that a circle is found whatever the paths look like.
        return _RecipeFile(file.resolve(), str(file), "", file.parent)
    hint = did_you_mean(recipe, names)
    raise UserError(
        f'"{file}" is neither a file nor a bundled recipe.'
        f"{hint or ' `deepnmt recipe --list` lists the bundled ones.'}"
    )


def _parse(file, checker):
    content, node = file.read()
    positions = {}
    _find_positions(node, file.place, positions, checker)
    move_earlier_keys(content, positions)
    own = content.get("import") if isinstance(content, dict) else None
    if isinstance(own, list):
        content["import"] = [located(entry, file.folder) for entry in own]
    return {} if content is None else content, positions


def _find_positions(node, place, positions, checker, prefix=""):
    """Collects the position of each key of a YAML document."""
    if isinstance(node, yaml.MappingNode):
        items = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        items = [(str(i), item, item) for i, item in enumerate(node.value)]
    else:
        items = []
    for name, at, value in items:
        key = join(prefix, name)
        position = Position(place, at.start_mark.line + 1)
        if key in positions:
            first = positions[key].line
            rule = f"is given twice, first in line {first}."
            checker.add(key, rule, position)
        positions.setdefault(key, position)
        _find_positions(value, place, positions, checker, key)
