"""Checks values in the configurations of other toolkits."""

from collections.abc import Mapping
from typing import Any

from keras_deepnmt.errors import UserError


def positive_integer(value: object, key: str, origin: object) -> int:
    """Returns a size, and refuses what is none."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(
            f"{origin}: `{key}` must be an integer, at least 1. Received: "
            f"{value!r}"
        )
    return value


def section(
    config: Mapping[str, Any], key: str, name: str, origin: object
) -> dict[str, Any]:
    """Returns a section, or an empty one; refuses what is none.

    `name` is that of the section in errors.
    """
    value = config.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(
            f"{origin}: `{name}` must be an object with keys. Received: "
            f"{value!r}"
        )
    return value


# Up to here a limit is no longer than those of short sources by default.
_SHORT_LIMIT = 100


def length_limits(most: int) -> dict[str, Any]:
    """Returns options for one limit of the lengths of all translations.

    A batch has the fewer sentences the longer their translations may be. So a
    long limit becomes one that depends on the source, and that only broken
    translations reach. `most` counts the tokens of a translation with its end.
    """
    if most <= _SHORT_LIMIT:
        return {"max_length_ratio": 0.0, "max_extra_tokens": most}
    return {"max_length_ratio": 3.0, "max_extra_tokens": 50}
