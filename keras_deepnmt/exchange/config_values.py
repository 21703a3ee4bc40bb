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
