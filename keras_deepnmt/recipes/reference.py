"""Lists all recipe keys: as a page, and as a JSON Schema for editors."""

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.docstrings import argument_descriptions
from keras_deepnmt.recipes.checking import is_required, join
from keras_deepnmt.recipes.schema import Recipe

_TYPES = {
    int: ("integer", "integer"),
    float: ("number", "number"),
    str: ("text", "string"),
    bool: ("true or false", "boolean"),
}
_UNIONS = (types.UnionType, typing.Union)
_PAGE_HEAD = """\
# Recipe keys

All keys of a recipe, with the type and the default of each. This page is
written by `docs/write_recipe_keys.py`. [Training](training.md) explains how the
keys work together. `deepnmt recipe --new` prints a recipe to start from, and
`deepnmt recipe --show RECIPE` one with all its values.

Keys are written with dots, as `--set` takes them: `training.steps` is the key
`steps` in the section `training`. Where there are several defaults, the
description says which one applies when.
"""


@dataclass(frozen=True)
class RecipeKey:
    """One key of a recipe.

    Attributes:
        name: the dotted key; for the keys of a corpus the key alone.
        hint: the type of its value.
        description: what it means, with its unit.
        is_required: whether a recipe must have it.
        defaults: the values that it has if it is left out: one, or several if
            they depend on another key.
        when_left_out: what its default is, if that is no fixed value.
        named_sections: for a mapping, the sections of some of its names.
    """

    name: str
    hint: Any
    description: str
    is_required: bool
    defaults: tuple[Any, ...]
    when_left_out: str | None = None
    named_sections: Mapping[str, type] = field(default_factory=dict)


def section_keys(kind: type, path: str = "") -> list[RecipeKey]:
    """Returns the keys of one section, without those of its sections.

    Example:
    >>> from keras_deepnmt.recipes.schema import DecodingRecipe
    >>> section_keys(DecodingRecipe, "decoding")[0].name
    'decoding.num_beams'
    """
    hints = typing.get_type_hints(kind)
    descriptions = argument_descriptions(kind)
    return [
        RecipeKey(
            join(path, field.name),
            hints[field.name],
            descriptions[field.name],
            is_required(field),
            _defaults(kind, field),
            field.metadata.get("when_left_out"),
            field.metadata.get("sections", {}),
        )
        for field in dataclasses.fields(kind)
    ]


def sections(kind: type = Recipe, path: str = "") -> Iterator[tuple[str, type]]:
    """Yields the dotted name and the dataclass of each section, outer first.

    Example:
    >>> dict(sections())["model"].__name__
    'ModelRecipe'
    """
    yield path, kind
    for key in dataclasses.fields(kind):
        for name, inner in key.metadata.get("sections", {}).items():
            yield from sections(inner, join(join(path, key.name), name))
    for name, hint in typing.get_type_hints(kind).items():
        inner = _section_of(hint)
        if inner is not None and inner is not CorpusOptions:
            yield from sections(inner, join(path, name))


def reference_page() -> str:
    """Returns the Markdown page that lists every key."""
    parts = [_PAGE_HEAD]
    for path, kind in sections():
        title = f"## `{path}`" if path else "## The recipe"
        keys = [
            key
            for key in section_keys(kind, path)
            # Sections that are always there need no row of their own.
            if not dataclasses.is_dataclass(key.hint)
        ]
        parts.append(f"{title}\n\n{_summary(kind)}\n\n{_table(keys)}")
        if path == "data":
            parts.append(
                "### A corpus\n\nThe keys of `data.valid`, of `data.test` and "
                "of each entry of the list\n`data.train`:\n\n"
                + _table(section_keys(CorpusOptions))
            )
    return "\n".join(parts)


def json_schema(presets: Sequence[str], models: Sequence[type]) -> dict:
    """Returns the JSON Schema of recipe files.

    `presets` are the names of the presets, and `models` the classes whose
    arguments `model.overrides` may hold.
    """
    schema = _object_schema(Recipe)
    model = schema["properties"]["model"]["properties"]
    # A name registered by the user is not in the list.
    model["preset"]["anyOf"] = [{"enum": list(presets)}, {"type": "string"}]
    del model["preset"]["type"]
    model["overrides"]["properties"] = _override_schemas(models)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Recipe of keras_deepnmt",
        # A recipe that extends another one needs to give nothing.
        "anyOf": [{"required": ["extends"]}, _take_required(schema)],
        **schema,
    }


def schema_file() -> Path:
    """Returns the path of the JSON Schema that is installed.

    Example:
    >>> schema_file().name
    'recipe.schema.json'
    """
    return Path(str(resources.files(__package__) / "recipe.schema.json"))


def _section_of(hint):
    """Returns the dataclass of a section or of a list of them, or `None`."""
    for part in (hint, *typing.get_args(hint)):
        if dataclasses.is_dataclass(part):
            return part
    return None


def _defaults(kind, field):
    if field.default_factory is not dataclasses.MISSING:
        return (_plain(field.default_factory()),)
    if field.default is dataclasses.MISSING:
        return ()
    if field.default is not None:
        return (_plain(field.default),)
    values = [getattr(made, field.name) for made in _made_by_choice(kind)]
    found = dict.fromkeys(value for value in values if value is not None)
    return tuple(found) or (None,)


def _made_by_choice(kind):
    """Makes a section with each value of each choice, where that is allowed."""
    hints = typing.get_type_hints(kind)
    needed = {
        field.name: {int: 1, float: 0.5, str: "-"}.get(hints[field.name])
        for field in dataclasses.fields(kind)
        if is_required(field)
    }
    choices = [{}]
    for name, hint in hints.items():
        if typing.get_origin(hint) is typing.Literal:
            choices += [{name: value} for value in typing.get_args(hint)]
    for choice in choices:
        try:
            yield kind(**needed, **choice)
        except (TypeError, ValueError):
            continue


def _plain(value):
    if dataclasses.is_dataclass(value):
        return {}
    return list(value) if isinstance(value, tuple) else value


def _summary(kind):
    doc = inspect.cleandoc(kind.__doc__)
    return doc.split("\n\nArgs:")[0].split("\n\nRaises:")[0]


def _table(keys):
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key in keys:
        cells = (
            f"`{key.name}`",
            _type_name(key.hint),
            _default_cell(key),
            _meaning(key),
        )
        rows.append(
            f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
        )
    return "\n".join(rows) + "\n"


def _default_cell(key):
    if key.is_required:
        return "required"
    if key.when_left_out:
        return key.when_left_out
    return ", ".join(f"`{_yaml(value)}`" for value in key.defaults)


def _meaning(key):
    text = key.description
    if len(key.defaults) == 1:
        # The column says it already.
        text = re.sub(r"[.;]? Defaults to \S+\.$", ".", text)
    return text[0].upper() + text[1:]


def _yaml(value):
    if isinstance(value, float) and "e" in repr(value):
        mantissa, exponent = repr(value).split("e")
        dot = "" if "." in mantissa else ".0"
        return f"{mantissa}{dot}e{exponent.replace('-0', '-')}"
    text = yaml.safe_dump(value, default_flow_style=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _type_name(hint):
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if typing.get_origin(hint) in _UNIONS:
        names = [
            "null" if part is type(None) else _type_name(part)
            for part in arguments
        ]
        return " or ".join(names)
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (list, tuple):
        return f"list of {_plural(_type_name(arguments[0]))}"
    if origin is dict:
        return "mapping"
    if hint is CorpusOptions:
        return "[corpus](#a-corpus)"
    return _TYPES[hint][0] if hint in _TYPES else "section"


def _plural(name):
    return {"text": "texts", "[corpus](#a-corpus)": "[corpora](#a-corpus)"}[
        name
    ]


def _object_schema(kind):
    keys = section_keys(kind)
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _key_schema(key) for key in keys},
    }
    required = [key.name for key in keys if key.is_required]
    # A prepared folder gives the data, and a preset folder the model.
    given = ((Recipe, "data"), (Recipe, "model"))
    required = [name for name in required if (kind, name) not in given]
    return schema | ({"required": required} if required else {})


def _take_required(schema):
    """Takes `required` out of a schema and its sections, as a schema."""
    taken = {"required": schema.pop("required")} if "required" in schema else {}
    sections = {}
    for name, section in schema.get("properties", {}).items():
        for part in (section, *section.get("anyOf", ())):
            if required := _take_required(part):
                sections[name] = required
    return taken | ({"properties": sections} if sections else {})


def _key_schema(key):
    text = _meaning(dataclasses.replace(key, defaults=()))
    schema = {**_hint_schema(key.hint), "description": text}
    if key.named_sections:
        null = {"type": "null"}
        schema["properties"] = {
            name: {"anyOf": [_object_schema(kind), null]}
            for name, kind in key.named_sections.items()
        }
    is_section = _section_of(key.hint) is not None
    has_none = key.is_required or key.when_left_out or is_section
    if not has_none and len(key.defaults) == 1:
        schema["default"] = key.defaults[0]
    return schema


def _hint_schema(hint):
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if typing.get_origin(hint) in _UNIONS:
        return {"anyOf": [_hint_schema(part) for part in arguments]}
    if hint is type(None):
        return {"type": "null"}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple):
        return {"type": "array", "items": _hint_schema(arguments[0])}
    if origin is dict:
        return {"type": "object"}
    if dataclasses.is_dataclass(hint):
        return _object_schema(hint)
    return {"type": _TYPES[hint][1]}


def _override_schemas(models):
    from keras_deepnmt.models.slot_layers import SLOT_LAYERS

    schemas = {}
    for model in models:
        descriptions = argument_descriptions(model)
        for name in inspect.signature(model.__init__).parameters:
            if name in ("self", "kwargs"):
                continue
            if name.endswith("_vocabulary_size"):
                continue  # those of the data
            schema = schemas.setdefault(name, {})
            if name in SLOT_LAYERS:
                schemas[name] = _slot_schema(SLOT_LAYERS[name])
            elif name in descriptions:
                schema.setdefault(
                    "description", f"{model.__name__}: {descriptions[name]}"
                )
    return schemas


def _slot_schema(layers):
    return {
        "description": "Layer of this slot: its class name, or a mapping of "
        "its class name to its arguments.",
        "anyOf": [
            {"enum": list(layers)},
            {
                "type": "object",
                "properties": {layer: {"type": "object"} for layer in layers},
            },
            {"type": ["string", "number", "null"]},
        ],
    }
