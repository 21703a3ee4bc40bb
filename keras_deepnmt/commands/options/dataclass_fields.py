"""Makes command-line options from the fields of a dataclass."""

import dataclasses
import types
import typing

from jsonargparse import Namespace

from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.docstrings import argument_descriptions


def add_dataclass_options(parser: VerbParser, kind: type) -> None:
    """Adds an option for each field that is a number, string, bool or Literal.

    The help texts come from the `Args:` section of the dataclass' docstring.
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
    """Returns the options that differ from their defaults, by field name."""
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
    """Returns the descriptions in a docstring's `Args:` section, by name."""
    return {
        name: description.replace("%", "%%")
        for name, description in argument_descriptions(kind).items()
    }


def _plain_type(hint: object) -> type | None:
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    plain = hint in (int, float, str, bool)
    return hint if plain or typing.get_origin(hint) is typing.Literal else None
