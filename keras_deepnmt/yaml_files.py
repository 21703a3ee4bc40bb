"""Reads YAML that may come from a stranger: plain values, and bounded."""

import re
from pathlib import Path
from typing import Any

import yaml

from keras_deepnmt.errors import UserError

# Reading a file of this size takes a few seconds.
_MOST_CHARACTERS = 1_000_000
_MOST_VALUES = 100_000
_MOST_LEVELS = 50


class _Loader(yaml.SafeLoader):
    """Reads numbers such as 1e-5, which are texts for PyYAML, as numbers."""


# As in YAML 1.2; PyYAML needs a point and a sign.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def yaml_value(text: str) -> Any:
    """Returns the value of a short text, such as that of an option.

    Raises a `ValueError` if the text is not YAML.
    """
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        # PyYAML raises `ValueError` itself for a date such as 2020-13-45.
        raise ValueError(str(error)) from error


def read_yaml(
    file: str | Path, place: object = None
) -> tuple[Any, yaml.Node | None]:
    """Reads a YAML file: its content, and its nodes, which know their lines.

    `place` is its name in errors, by default its path. Raises a `UserError` if
    the file is not UTF-8 or not YAML, or has too many characters, values or
    levels. The message is one line that names the file.
    """
    place = file if place is None else place
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read(_MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UserError(f"{place}: not UTF-8 at byte {error.start}.") from error
    if len(text) > _MOST_CHARACTERS:
        raise UserError(
            f"{place}: must have at most {_MOST_CHARACTERS:,} characters."
        )
    return parse_yaml(text, place)


def parse_yaml(text: str, place: object) -> tuple[Any, yaml.Node | None]:
    """Reads YAML from a text; `place` is named in errors.

    Returns what `read_yaml` returns, and raises the same errors.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, None
        # Before anything follows the aliases, which may multiply.
        _check_size(node, place)
        return loader.construct_document(node), node
    except UserError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML raises `ValueError` for a date such as 2020-13-45; brackets
        # may be too deep.
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise UserError(f"{place}{line}: not YAML: {problem}.") from error


def _check_size(node, place):
    """Refuses a document with too many values or levels, aliases followed.

    A few lines of aliases can stand for billions of values.
    """
    measured = {}

    def refuse(node, rule):
        line = node.start_mark.line + 1
        raise UserError(f"{place}, line {line}: must have at most {rule}.")

    def measure(node, level):
        """Returns the number of values and of levels of a node."""
        if id(node) in measured:
            return measured[id(node)]
        inner = node.value if isinstance(node.value, list) else []
        if isinstance(node, yaml.MappingNode):
            inner = [part for pair in inner for part in pair]
        size, height = 1, 1
        # An alias inside of what it stands for is met again at each level.
        for part in inner if level <= _MOST_LEVELS else ():
            values, levels = measure(part, level + 1)
            size, height = size + values, max(height, levels + 1)
        if size > _MOST_VALUES:
            refuse(node, f"{_MOST_VALUES:,} values, with those of aliases")
        if max(level, height) > _MOST_LEVELS:
            refuse(node, f"{_MOST_LEVELS} levels, with those of aliases")
        measured[id(node)] = size, height
        return measured[id(node)]

    measure(node, 1)
