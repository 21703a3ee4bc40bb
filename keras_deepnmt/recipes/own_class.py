"""A class of the user and its arguments, as the value of a recipe key."""

from typing import Annotated, Any

from pydantic import AfterValidator

from keras_deepnmt.own_code.lookup import name_and_options


def _check(value: str | dict[str, Any]) -> str | dict[str, Any]:
    try:
        name_and_options(value)
    except ValueError as error:
        raise ValueError(f"each entry {error}") from error
    return value


OwnClass = Annotated[str | dict[str, Any], AfterValidator(_check)]
