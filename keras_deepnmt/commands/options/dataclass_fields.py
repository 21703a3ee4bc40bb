"""Makes command-line options from the fields of a dataclass."""

import argparse
import dataclasses
import re
import typing

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser, with_default
from keras_deepnmt.docstrings import argument_descriptions


def add_dataclass_options(parser: VerbParser, kind: type) -> None:
    """Adds an option for each field that is a plain value or a list of strings.

    Plain values are numbers, strings, bools and Literals. The help texts come
    from the `Args:` section of the dataclass' docstring. An option that is not
    given has no value, so that `given_options` knows it.
    """
    documented = argument_help(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name, hint in _option_types(kind).items():
        is_list = hint == list[str]
        kind_of_value = (
            {"nargs": "+", "type": str} if is_list else {"type": hint}
        )
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            **kind_of_value,
            default=argparse.SUPPRESS,
            help=with_default(
                as_options(documented[name], kind), _default(fields[name])
            ),
            **placeholder(str if is_list else hint, documented[name]),
        )


def given_options(options: Namespace, kind: type) -> dict[str, object]:
    """Returns the options that are given, also as the default, by field name.

    Example:
    >>> from keras_deepnmt.data import PrepareOptions
    >>> given_options(Namespace(seed=0, quiet=True), PrepareOptions)
    {'seed': 0}
    """
    names = [field.name for field in dataclasses.fields(kind)]
    return {name: options[name] for name in names if name in options}


def as_options(message: str, kind: type) -> str:
    """Replaces the fields in an error message by their options.

    Example:
    >>> from keras_deepnmt.data import PrepareOptions
    >>> as_options("`max_ratio` is ... Received: max_ratio=0", PrepareOptions)
    '`--max-ratio` is ... Received: --max-ratio 0'
    """
    for name in _option_types(kind):
        option = f"--{name.replace('_', '-')}"
        message = re.sub(rf"`{name}`", f"`{option}`", message)
        message = re.sub(rf"(?<![-\w]){name}=", f"{option} ", message)
    return message


def argument_help(kind: type) -> dict[str, str]:
    """Returns the descriptions in a docstring's `Args:` section, by name."""
    return {
        name: description.replace("%", "%%")
        for name, description in argument_descriptions(kind).items()
    }


def placeholder(hint: type, description: str) -> dict[str, str]:
    """Returns what stands for a value in the help, as an argument of argparse.

    Example:
    >>> placeholder(int, "Number of beams.")
    {'metavar': 'N'}
    >>> placeholder(bool, "Whether case is ignored.")  # shows the choices
    {}
    """
    text = "FILE" if description.startswith("Path ") else "NAME"
    words = {int: "N", float: "X", str: text}
    return {"metavar": words[hint]} if hint in words else {}


def _default(field: dataclasses.Field) -> object:
    if field.default_factory is dataclasses.MISSING:
        return field.default
    return field.default_factory()


def _option_types(kind: type) -> dict[str, type]:
    """Returns the types of the fields that are options, by name."""
    hints = typing.get_type_hints(kind)
    types_of = {
        field.name: _plain_type(hints[field.name])
        for field in dataclasses.fields(kind)
    }
    return {name: hint for name, hint in types_of.items() if hint is not None}


def _plain_type(hint: object) -> type | None:
    if type(None) in typing.get_args(hint):
        hint = typing.get_args(hint)[0]
    plain = hint in (int, float, str, bool, list[str])
    return hint if plain or typing.get_origin(hint) is typing.Literal else None
