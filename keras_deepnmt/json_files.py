"""Reads JSON that may come from a stranger: bounded, and of a known form."""

import json
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError

_MOST_BYTES = 100_000_000
# Files of this package and of Keras have at most about 20 levels.
_MOST_LEVELS = 100
_MOST_SHOWN = 60
# The rules of pydantic, by the names of its errors, in words of JSON.
_KINDS = {
    "bool_type": "true or false",
    "dict_type": "an object with keys",
    "float_type": "a number",
    "int_type": "an integer",
    "list_type": "a list",
    "model_type": "an object with keys",
    "string_type": "text",
}


def read_json(path: str | Path, form: Any = None) -> Any:
    """Reads a JSON file.

    Args:
        path: the file.
        form: a type that the content must have, such as `dict[str, int]` or a
            pydantic model. Defaults to any.

    Returns:
        The content, as it is in the file.

    Raises:
        UserError: if the file is not JSON, is too large or too deep, or has not
            this form. The message is one line that names the file and the key.
        OSError: if it cannot be read.

    Example:
    >>> size = Path("damaged.json").write_text("{")
    >>> read_json("damaged.json")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: damaged.json: not valid JSON (Expecting...
    """
    with open(path, "rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise UserError(
            f"{path}: must have at most {_MOST_BYTES:,} bytes. "
            "It is no file that deepnmt wrote."
        )
    return parse_json(content, path, form)


def parse_json(content: bytes | str, place: object, form: Any = None) -> Any:
    """Reads JSON from a text or its UTF-8 bytes; `place` is named in errors.

    Raises a `UserError` as `read_json` does.

    Example:
    >>> parse_json('{"steps": "7"}', "run.json", dict[str, int])
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: run.json: `steps` must be an integer. ...
    """
    try:
        made = json.loads(content)
    except RecursionError:
        made = _TOO_DEEP
    except ValueError as error:
        raise UserError(f"{place}: not valid JSON ({error}).") from error
    if made is _TOO_DEEP or _is_too_deep(made):
        raise UserError(
            f"{place}: must have at most {_MOST_LEVELS} levels of brackets."
        )
    if form is not None:
        _check_form(made, place, form)
    return made


_TOO_DEEP = object()


def _is_too_deep(content):
    """Whether there are more levels; without recursion."""
    level = [[content]]
    for _ in range(_MOST_LEVELS + 1):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _check_form(content, place, form):
    # Imported here, since most files are of our own processes.
    import pydantic

    adapter = pydantic.TypeAdapter(form)
    try:
        adapter.validate_python(content, strict=True)
    except pydantic.ValidationError as error:
        mistakes = error.errors(include_url=False)
    else:
        return
    missing = sorted(
        ".".join(map(str, item["loc"]))
        for item in mistakes
        if item["type"] == "missing"
    )
    if missing:
        raise UserError(f"{place}: lacks {', '.join(missing)}.")
    key = ".".join(map(str, mistakes[0]["loc"]))
    received = repr(mistakes[0]["input"])
    if len(received) > _MOST_SHOWN:
        received = f"{received[:_MOST_SHOWN]}..."
    kind = mistakes[0]["type"]
    rule = f"must be {_KINDS[kind]}" if kind in _KINDS else mistakes[0]["msg"]
    where = f"`{key}` " if key else ""
    raise UserError(f"{place}: {where}{rule}. Received: {received}")
