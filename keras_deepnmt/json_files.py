"""Reads JSON that may come from a stranger: bounded, and of a known form."""

import json
import re
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


# How pydantic says the other rules, such as "Input should be greater than 0",
# and those of validators, whose messages go on after "must".
_RULE = re.compile(r"^(?:Input|\w+) should |^Value error, ")


def read_json(path: str | Path, form: Any = None, remedy: str = "") -> Any:
    """Reads a JSON file.

    `form` is a type that the content must have, such as `dict[str, int]` or a
    pydantic model, by default any. The content is returned as it is in the
    file. Raises a `UserError` if the file is not JSON, is too large or too
    deep, or does not have this form. The message is one line that names the
    file and the key, and ends with the `remedy`, a sentence that says what the
    user can do.
    """
    with open(path, "rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        _refuse(
            f"{path}: must have at most {_MOST_BYTES:,} bytes. "
            "It is no file that deepnmt wrote.",
            remedy,
        )
    return parse_json(content, path, form, remedy)


def parse_json(
    content: bytes | str, place: object, form: Any = None, remedy: str = ""
) -> Any:
    """Reads JSON from a text or its UTF-8 bytes; `place` is named in errors.

    The other arguments and the errors are those of `read_json`.
    """
    try:
        if isinstance(content, bytes):
            content = content.decode("utf-8-sig")
        made = json.loads(content)
    except RecursionError:
        made = _TOO_DEEP
    except ValueError as error:
        _refuse(f"{place}: not valid JSON ({error}).", remedy, error)
    if made is _TOO_DEEP or _is_too_deep(made):
        _refuse(
            f"{place}: must have at most {_MOST_LEVELS} levels of brackets.",
            remedy,
        )
    if "\\ud" in content.lower() and not _is_text(made):
        _refuse(
            f"{place}: not valid JSON (it escapes halves of characters).",
            remedy,
        )
    if form is not None:
        check_form(made, place, form, remedy)
    return made


def check_form(
    content: Any, place: object, form: Any, remedy: str = ""
) -> None:
    """Refuses content of another form, such as that of a YAML file.

    The other arguments and the error are those of `parse_json`.
    """
    mistake = _mistake(content, form)
    if mistake is not None:
        _refuse(f"{place}: {mistake}", remedy)


_TOO_DEEP = object()


def _refuse(message, remedy, cause=None):
    raise UserError(f"{message} {remedy}".strip()) from cause


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


def _is_text(content):
    """Whether all texts can be written, which halves of a pair cannot."""
    try:
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _mistake(content, form):
    """Says in a sentence which rule of a form is broken; `None` if none is."""
    # Imported here, since most files are of our own processes.
    import pydantic

    adapter = pydantic.TypeAdapter(form)
    try:
        adapter.validate_python(content, strict=True)
    except pydantic.ValidationError as error:
        mistakes = error.errors(include_url=False)
    else:
        return None
    missing = sorted(
        ".".join(map(str, item["loc"]))
        for item in mistakes
        if item["type"] == "missing"
    )
    if missing:
        return f"lacks {', '.join(missing)}."
    key = ".".join(map(str, mistakes[0]["loc"]))
    received = repr(mistakes[0]["input"])
    if len(received) > _MOST_SHOWN:
        received = f"{received[:_MOST_SHOWN]}..."
    kind = mistakes[0]["type"]
    rule = f"be {_KINDS[kind]}" if kind in _KINDS else mistakes[0]["msg"]
    rule = _RULE.sub("", rule)
    where = f"`{key}` " if key else ""
    return f"{where}must {rule}. Received: {received}."
