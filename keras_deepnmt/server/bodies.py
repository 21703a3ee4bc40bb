"""Reads the bodies of requests: bounded in bytes and in time."""

import asyncio
import contextlib
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request

from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import check_form, parse_json
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits

_PLACE = "the body"
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 10_000


async def read_body(request: Request, limits: RequestLimits) -> bytes:
    """Reads a body, as far as the limits allow.

    Raises a `RequestError` if it is too large, or does not come within the
    time.
    """
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > limits.max_bytes:
        raise _too_large(limits)
    pieces, size = [], 0
    try:
        async with asyncio.timeout(limits.timeout_s):
            async for piece in request.stream():
                size += len(piece)
                if size > limits.max_bytes:
                    raise _too_large(limits)
                pieces.append(piece)
    except TimeoutError as error:
        raise RequestError(
            408,
            f"the body did not come within {limits.timeout_s:g} s.",
        ) from error
    except ClientDisconnect as error:
        raise RequestError(499, "the client has gone.") from error
    return b"".join(pieces)


def parsed_json(content: bytes, form: Any) -> Any:
    """Returns the JSON of a body, which must have this form.

    Raises a `RequestError` if it is not UTF-8 or JSON, or has another form.
    """
    try:
        return parse_json(content, _PLACE, form)
    except UserError as error:
        raise RequestError(400, str(error)) from error


def parsed_fields(content: bytes, kind: str, form: Any) -> dict[str, Any]:
    """Returns the fields of a body of JSON, or of a web form.

    `kind` is the header `Content-Type`. The fields of a web form are texts, or
    lists of texts where one is repeated, and `alternatives` is an integer.
    Raises a `RequestError` if the fields do not have the given form, or the
    body is of another kind.
    """
    kind = kind.partition(";")[0].strip().lower()
    if kind in ("", "application/json"):
        return parsed_json(content, form)
    if kind != _FORM:
        raise RequestError(
            415, f"`Content-Type` must be application/json or {_FORM}."
        )
    try:
        fields = parse_qs(
            content.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except UnicodeDecodeError as error:
        raise RequestError(
            400, f"{_PLACE}: not a web form in UTF-8."
        ) from error
    except ValueError as error:
        raise RequestError(
            400,
            f"{_PLACE}: must have at most {_MOST_FIELDS:,} fields. Send fewer "
            "sentences at a time.",
        ) from error
    made: dict[str, Any] = {
        name: values[0] if len(values) == 1 else values
        for name, values in fields.items()
    }
    if isinstance(number := made.get("alternatives"), str):
        # Another text is refused below, with its name.
        with contextlib.suppress(ValueError):
            made["alternatives"] = int(number)
    try:
        check_form(made, _PLACE, form)
    except UserError as error:
        raise RequestError(400, str(error)) from error
    return made


def _too_large(limits):
    return RequestError(
        413,
        f"{_PLACE}: must have at most {limits.max_bytes:,} bytes. Send fewer "
        "sentences at a time.",
    )
