"""Dataclasses whose values are checked, and messages about wrong ones.

pydantic checks the types and bounds that the annotations state. The messages
are written here: each names the key, the rule, what was received and, where one
is certain, the remedy.
"""

import functools
import inspect
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Annotated, Any

import pydantic
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
)
from pydantic_core import PydanticCustomError

from keras_deepnmt.docstrings import argument_descriptions
from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.own_code.lookup import name_and_options
from keras_deepnmt.suggestions import nearest_name

# Counts and ids are int32 in TensorFlow.
LARGEST = 2**31 - 1


def _integer(value):
    if isinstance(value, bool | str):
        raise PydanticCustomError("number_type", "no number")
    return int(value) if isinstance(value, Integral) else _float(value)


def _float(value):
    # Strings are accepted: YAML reads 1e-9 as a string.
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "no number")
    return float(value) if isinstance(value, Real) else value


def integer(least: int = 0, most: int = LARGEST) -> Any:
    """Returns the type of integers in a range; 4.0 counts as 4.

    Example:
    >>> describe(TypeAdapter(integer(1, 9)).json_schema())
    'an integer from 1 to 9'
    """
    return Annotated[int, Field(ge=least, le=most), BeforeValidator(_integer)]


def number(**bounds: float) -> Any:
    """Returns the type of finite numbers within the bounds of `Field`.

    Example:
    >>> describe(TypeAdapter(number(ge=0, lt=1)).json_schema())
    'a finite number in [0, 1)'
    """
    bounds = {"allow_inf_nan": False, **bounds}
    return Annotated[float, Field(**bounds), BeforeValidator(_float)]


Count = integer(1)
Natural = integer(0)
Seed = integer(0, 2**32 - 1)  # as NumPy requires
Positive = number(gt=0)
NotNegative = number(ge=0)
AboveOne = number(gt=1)
Fraction = number(ge=0, lt=1)
OpenFraction = number(gt=0, lt=1)
Share = number(ge=0, le=1)
Flag = pydantic.StrictBool


def _check_own_class(value):
    try:
        name_and_options(value)
    except ValueError as error:
        raise ValueError(f"each entry {error}") from error
    return value


# A class of the user, with its arguments if needed.
OwnClass = Annotated[
    str | dict[str, Any], pydantic.AfterValidator(_check_own_class)
]


# How a value of `one_or_more` is given; no key has such a name.
_FORMS = ("(one)", "(more)", "(none)")


def one_or_more(kind: type) -> Any:
    """Returns the type of one value of a kind, a list of them, or `None`.

    Example:
    >>> describe(TypeAdapter(one_or_more(str)).json_schema()["oneOf"][2])
    'null'
    """
    one, more, none = map(Tag, _FORMS)
    forms = Annotated[kind, one] | Annotated[list[kind], more]
    return Annotated[forms | Annotated[None, none], Discriminator(_form)]


def _form(value):
    if value is None:
        return _FORMS[2]
    return _FORMS[isinstance(value, list)]


@typing.dataclass_transform(frozen_default=True)
def checked_dataclass(kind: type) -> type:
    """Makes a frozen dataclass whose values are checked by their annotations.

    Its JSON Schema has the descriptions of its docstring, and the texts in the
    `metadata` of its fields. The text `remedy` is added to each message about
    the field.

    A wrong value raises a `UserError`, and so does a `ValueError` of
    `__post_init__` or of a pydantic validator. A value of a wrong type raises a
    `TypeError`.
    """
    config = ConfigDict(
        extra="forbid",
        validate_default=True,
        alias_generator=key_of,
        validate_by_name=True,
        field_title_generator=lambda name, info: "",
        json_schema_extra=_add_texts,
    )
    kind = pydantic.dataclasses.dataclass(frozen=True, config=config)(kind)
    validated, signature = kind.__init__, inspect.signature(kind)

    @functools.wraps(validated)
    def __init__(self, *args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        given = {key_of(name): value for name, value in given.items()}
        try:
            validated(self, **given)
        except pydantic.ValidationError as error:
            lines = [
                rule[2:] if rule.startswith(": ") else f"`{path[-1]}` {rule}"
                for path, rule in find_mistakes(kind, given, error)
            ]
            types = [item["type"] for item in error.errors()]
            if any(name.endswith("_type") for name in types):
                raise TypeError("\n".join(lines)) from None
            refused = UserErrors(lines) if lines[1:] else UserError(lines[0])
            raise refused from None

    kind.__init__ = __init__
    return kind


def key_of(field: str) -> str:
    """Returns the key of a field, which may be a word that Python reserves.

    Example:
    >>> key_of("import_")
    'import'
    """
    return field.removesuffix("_")


def summary(kind: type) -> str:
    """Returns the docstring of a class up to its arguments.

    Example:
    >>> summary(UserErrors)
    'Reports several mistakes, in one line each.'
    """
    text = inspect.cleandoc(kind.__doc__)
    return re.split(r"\n\n(?:Args|Raises|Example|Attributes):", text)[0]


def _add_texts(schema, kind):
    schema.pop("description", None)
    schema["title"] = summary(kind)
    for name, description in argument_descriptions(kind).items():
        node = schema["properties"][key_of(name)]
        node["description"] = description
        metadata = kind.__dataclass_fields__[name].metadata
        node |= {k: v for k, v in metadata.items() if isinstance(v, str)}


def find_mistakes(
    kind: type, content: Any, error: pydantic.ValidationError
) -> Iterator[tuple[tuple, str]]:
    """Yields the mistakes that pydantic found in `content`, one for each value.

    A mistake is the path of the value, and the rule that follows its name in a
    message. A rule that begins with a colon is the whole message of a check. A
    misspelt key is not reported as missing too.
    """
    schema, told = json_schema(kind), set()
    errors = error.errors(include_url=False)
    # Unknown keys first, since they may be misspelt known ones.
    for item in sorted(errors, key=lambda item: item["type"] not in _UNKNOWN):
        path, value = _locate(item, content)
        if path in told:
            continue
        told.add(path)
        node = node_at(schema, path)
        remedy = f". {node['remedy']}" if "remedy" in node else ""
        if item["type"] == "value_error":
            said = str(item["ctx"]["error"])
            keys = value if isinstance(value, Mapping) else ()
            named = [key for key in keys if f"`{key}`" in said]
            # The message begins with the key that breaks the rule.
            named.sort(key=lambda key: said.index(f"`{key}`"))
            yield (*path, *named[:1]), f": {said}"
        elif item["type"] == "missing":
            yield path, f"is missing{remedy}"
        elif item["type"] in _UNKNOWN:
            keys = keys_at(node_at(schema, path[:-1]))
            near = nearest_name(path[-1], keys)
            hint = f"possible here: {', '.join(keys)}."
            if near:
                meant = (*path[:-1], near)
                told.add(meant)
                hint = f"did you mean `{'.'.join(map(str, meant))}`?"
            yield path, f"is unknown; {hint}"
        else:
            yield path, f"must be {describe(node)}. Received: {value!r}{remedy}"


# pydantic's names of errors.
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden", "invalid_key")


def _locate(item, content):
    """Returns the path of an error, and the value that it leads to.

    A location may end with the name of a type, which is left out.
    """
    path = ()
    keys = tuple(key for key in item["loc"] if key not in _FORMS)
    for key in keys:
        inside = isinstance(content, Mapping) and key in content
        if isinstance(content, list) and isinstance(key, int):
            inside = key < len(content)
        if not inside:
            break
        path, content = (*path, key), content[key]
    # The name of a key that is missing, or is not a string.
    is_key = item["type"] == "missing" or item["type"] in _UNKNOWN
    return keys if is_key else path, content


@functools.cache
def json_schema(kind: type) -> dict[str, Any]:
    """Returns the JSON Schema of a checked dataclass, without references.

    The title of a section is its docstring, up to the arguments.
    """
    schema = TypeAdapter(kind).json_schema()
    return _inlined(schema, schema.pop("$defs", {}))


def _inlined(node, definitions):
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        own = {k: v for k, v in node.items() if v != "" and k != "$ref"}
        target = definitions[node["$ref"].rpartition("/")[2]]
        node = {**target, **own}
    return {
        # Both say the same of types that exclude each other.
        "anyOf" if key == "oneOf" else key: _inlined(value, definitions)
        for key, value in node.items()
        if value != ""
    }


def node_at(schema: dict[str, Any], path: Iterable) -> dict[str, Any]:
    """Returns the part of a JSON Schema for the value that a path leads to.

    It is empty if the schema does not describe that value.

    Example:
    >>> node_at({"properties": {"seed": {"type": "integer"}}}, ("seed",))
    {'type': 'integer'}
    """
    for key in path:
        if isinstance(key, int):
            parts = (schema, *schema.get("anyOf", ()))
            lists = [part["items"] for part in parts if "items" in part]
            schema = lists[0] if lists else {}
        else:
            # Of a mapping, all values are of one kind.
            others = schema.get("additionalProperties")
            others = others if isinstance(others, dict) else {}
            schema = keys_at(schema).get(key, others)
    return schema


def keys_at(node: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts of a JSON Schema for the keys of a section.

    Of a list of sections they are those of each of them.
    """
    for part in (node, *node.get("anyOf", ()), node.get("items", {})):
        if "properties" in part:
            return part["properties"]
    return {}


def describe(node: dict[str, Any]) -> str:
    """Returns the values that a JSON Schema allows, in words.

    Example:
    >>> describe({"anyOf": [{"enum": ["bpe", "unigram"]}, {"type": "null"}]})
    "'bpe' or 'unigram' or null"
    """
    if "anyOf" in node:
        return " or ".join(map(describe, node["anyOf"]))
    if "enum" in node or "const" in node:
        return " or ".join(map(repr, node.get("enum", [node.get("const")])))
    kind = node.get("type")
    if kind == "array":
        return (
            "a list, in brackets or with `- ` before each entry, where each "
            f"entry is {describe(node['items'])}"
        )
    words = {
        "boolean": "true or false",
        "integer": "an integer",
        "null": "null",
        "number": "a finite number",
        "object": "a mapping of keys to values",
        "string": "text",
    }
    # A key of a mapping has no type of its own, and must be text.
    return words.get(kind, "text") + _bounds(node)


def _bounds(node):
    least, above = node.get("minimum"), node.get("exclusiveMinimum")
    most, below = node.get("maximum"), node.get("exclusiveMaximum")
    if most is None and below is None:
        if least is None:
            return "" if above is None else f" above {above:g}"
        return f" of at least {least:g}"
    if node["type"] == "integer":
        return f" from {least:,} to {most:,}"
    low = f"({above:g}" if least is None else f"[{least:g}"
    high = f"{below:g})" if most is None else f"{most:g}]"
    return f" in {low}, {high}"
