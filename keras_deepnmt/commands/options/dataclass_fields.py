"""Turns a dataclass into options: its types, defaults and Args are the help."""

import dataclasses
import inspect
import re
import types
import typing

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser


def add_dataclass_options(parser: VerbParser, kind: type) -> None:
    """Adds one option per plain field of a dataclass.

    Fields that hold other dataclasses are left out.

    Args:
        parser: the verb's parser.
        kind: dataclass with an `Args:` section in its docstring.
    """
    documented = argument_help(kind)
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        hint = _plain_type(hints[field.name])
        if hint is None:
            continue
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=hint,
            default=field.default,
            help=documented[field.name],
        )


def given_options(options: Namespace, kind: type) -> dict[str, object]:
    """Collects the options that differ from a dataclass's defaults.

    Args:
        options: what the parser returned.
        kind: the dataclass of `add_dataclass_options`.

    Returns:
        Values by field name.
    """
    values = {
        field.name: (options.get(field.name, field.default), field.default)
        for field in dataclasses.fields(kind)
    }
    return {
        name: value
        for name, (value, default) in values.items()
        if value != default
    }


def argument_help(kind: type) -> dict[str, str]:
    """Reads the `Args:` section of a docstring.

    Args:
        kind: a class or function.

    Returns:
        The description of each argument, on one line.

    Example:
    >>> argument_help(argument_help)["kind"]
    'a class or function.'
    """
    text = inspect.getdoc(kind).split("Args:\n")[1].split("\n\n")[0]
    entries = re.split(r"^    (\w+): ", text, flags=re.M)[1:]
    return {
        name: " ".join(description.split()).replace("%", "%%")
        for name, description in zip(entries[::2], entries[1::2], strict=True)
    }


def _plain_type(hint: object) -> type | None:
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    plain = hint in (int, float, str, bool)
    return hint if plain or typing.get_origin(hint) is typing.Literal else None
