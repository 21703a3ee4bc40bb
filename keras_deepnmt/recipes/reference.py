"""Lists all recipe keys: as a page, and as a JSON Schema for editors."""

import copy
import dataclasses
import inspect
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import yaml
from typing_extensions import is_typeddict

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.docstrings import argument_descriptions
from keras_deepnmt.recipes.changing_keys import changing_of
from keras_deepnmt.recipes.checking import join
from keras_deepnmt.recipes.schema import Recipe, sections_of
from keras_deepnmt.validation import (
    json_schema,
    key_of,
    keys_at,
    node_at,
    summary,
)

_CORPUS = "[corpus](#a-corpus)"
_PAGE_HEAD = """\
# Recipe keys

All keys of a recipe, with the type and the default of each. This page is
written by `docs/write_recipe_keys.py`. [Training](training.md) explains how the
keys work together. `deepnmt recipe --new` prints a recipe to start from, and
`deepnmt recipe --show RECIPE` one with all its values.

Keys are written with dots, as `--set` takes them: `training.steps` is the key
`steps` in the section `training`. Where there are several defaults, the
description says which one applies when.

The column “change” says whether a run that has begun can continue with another
value: “yes”; “yes, anew” where the final model and its scores are then made
anew, also in a finished run; “`--allow-changes`” where updates depend on the
key, so that `deepnmt train` must be given this option; or “no”.
[Change a run](training.md#change-a-run) has more.
"""


def sections(kind: type = Recipe, path: str = "") -> Iterator[tuple[str, type]]:
    """Yields the dotted name and the class of each section, outer first."""
    if not is_typeddict(kind):  # each of its keys is a section
        yield path, kind
    for name, inner in sections_of(kind).items():
        if inner is not dict:
            yield from sections(inner, join(path, name))


def reference_page() -> str:
    """Returns the Markdown page that lists every key."""
    parts = [_PAGE_HEAD]
    for path, kind in sections():
        title = f"## `{path}`" if path else "## The recipe"
        parts.append(f"{title}\n\n{summary(kind)}\n\n{_table(kind, path)}")
        if path == "data":
            parts.append(
                "### A corpus\n\nThe keys of `data.valid`, of `data.test` and "
                "of each entry of the list\n`data.train`:\n\n"
                + _table(CorpusOptions, section="data")
            )
    return "\n".join(parts)


def recipe_schema(presets: Sequence[str], models: Sequence[type]) -> dict:
    """Returns the JSON Schema of recipe files.

    `presets` are the names of the presets, and `models` the classes whose
    arguments `model.overrides` may hold.
    """
    schema = copy.deepcopy(json_schema(Recipe))
    for path, kind in sections():
        section = node_at(schema, path.split(".") if path else ())
        for key, node in keys_at(section).items():
            defaults = _defaults(kind, key, node)
            node["description"] = _meaning(node)
            for name in ("default", "remedy", "when_left_out"):
                node.pop(name, None)
            if len(defaults) == 1 and key not in sections_of(kind):
                node["default"] = defaults[0]
    # A prepared folder gives the data, a preset folder the model, and the file
    # the name.
    schema["required"] = ["training"]
    model = schema["properties"]["model"]["properties"]
    # A name registered by the user is not in the list.
    model["preset"]["anyOf"] = [{"enum": list(presets)}, {"type": "string"}]
    del model["preset"]["type"]
    model["overrides"]["properties"] = _override_schemas(models)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        # A recipe that extends another one needs to give nothing.
        "anyOf": [{"required": ["extends"]}, _take_required(schema)],
        **schema,
        "title": "Recipe of keras_deepnmt",
    }


def schema_file() -> Path:
    """Returns the path of the JSON Schema that is installed."""
    return Path(str(resources.files(__package__) / "recipe.schema.json"))


def _table(kind, path="", section=None):
    rows = [
        "| key | type | default | change | meaning |",
        "|---|---|---|---|---|",
    ]
    for key, node in keys_at(json_schema(kind)).items():
        if node.get("additionalProperties") is False:
            continue  # a section that is always there
        defaults = _defaults(kind, key, node)
        default = ", ".join(f"`{_yaml(value)}`" for value in defaults)
        if key in json_schema(kind).get("required", ()):
            default = "required"
        cells = (
            f"`{join(path, key)}`",
            _type(node),
            node.get("when_left_out", default),
            changing_of(section or join(path, key), Recipe).value,
            _meaning(node, defaults),
        )
        rows.append(
            f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
        )
    return "\n".join(rows) + "\n"


def _defaults(kind, key, node):
    """The values that a key has if it is left out; several by a choice."""
    choice = getattr(kind, "choice", None)
    if choice is not None and key in choice.keys():
        return choice.defaults_of(key)
    if "when_left_out" in node:
        return []
    fields = {key_of(f.name): f for f in dataclasses.fields(kind)}
    field = fields[key]
    if "default" not in node and callable(field.default_factory):
        return [field.default_factory()]
    return [node["default"]] if "default" in node else []


def _meaning(node, defaults=()):
    text = node["description"]
    if len(defaults) == 1:
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


def _type(node):
    if "anyOf" in node:
        return " or ".join(map(_type, node["anyOf"]))
    if "enum" in node or "const" in node:
        values = node.get("enum", [node.get("const")])
        return " or ".join(f"`{value}`" for value in values)
    if node["type"] == "array":
        plural = {"text": "texts", "section": "sections"}
        plural[_CORPUS] = "[corpora](#a-corpus)"
        items = _type(node["items"])
        return f"list of {plural.get(items, items)}"
    if node.get("title") == summary(CorpusOptions):
        return _CORPUS
    is_section = node.get("additionalProperties") is False
    words = {
        "boolean": "true or false",
        "object": "section" if is_section else "mapping",
        "string": "text",
    }
    return words.get(node["type"], node["type"])


def _take_required(schema):
    """Takes `required` out of a schema and its sections, as a schema."""
    taken = {"required": schema.pop("required")} if "required" in schema else {}
    sections = {}
    for name, section in schema.get("properties", {}).items():
        for part in (section, *section.get("anyOf", ())):
            if required := _take_required(part):
                sections[name] = required
    return taken | ({"properties": sections} if sections else {})


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
