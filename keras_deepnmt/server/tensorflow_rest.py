"""The REST interface of TensorFlow Serving, for the signatures of exports.

Paths, forms and statuses are those of its documentation, so that a client does
not change when TensorFlow Serving takes over.
"""

import asyncio
import base64
import binascii
import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from keras_deepnmt.errors import UserError
from keras_deepnmt.server.access import Access
from keras_deepnmt.server.answers import count_tokens, results_of
from keras_deepnmt.server.bodies import parsed_json, read_body
from keras_deepnmt.server.libretranslate import ERRORS
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import (
    ServedModel,
    ServedModels,
    Version,
)
from keras_deepnmt.server.signatures import (
    NUMBERS,
    ROW_INPUTS,
    as_outputs,
    as_rows,
    read_inputs,
    sentences_of,
)

DEFAULT_SIGNATURE = "serving_default"
_NOT_FOUND = {404: {**ERRORS[400], "description": "No such model or version."}}


def tensorflow_rest_routes(
    models: ServedModels,
    limits: RequestLimits,
    access: Access,
) -> APIRouter:
    """Makes the routes below `/v1/models`."""
    routes = APIRouter()
    body = {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "signature_name": {"type": "string"},
                        "inputs": {},
                        "instances": {"type": "array", "items": {}},
                    },
                }
            }
        },
    }

    async def predict(
        request: Request, name: str, number: str | None = None
    ) -> Response:
        content = await read_body(request, limits)
        access.check(request)
        model, version = find_version(models, name, number)
        asked = parsed_json(content, dict[str, Any])
        signature = asked.get("signature_name") or DEFAULT_SIGNATURE
        if signature not in version.engine.signatures:
            raise RequestError(
                400,
                f'Serving signature name: "{str(signature)[:60]}" not found '
                "in signature def",
            )
        is_rows = "instances" in asked
        try:
            inputs = _named_inputs(asked, signature)
            call, rows = read_inputs(
                signature, inputs, version.engine.most_hypotheses
            )
        except ValueError as error:
            raise RequestError(400, str(error)) from error
        sides = [
            await count_tokens(version, texts, limits)
            for texts in sentences_of(signature, rows)
        ]
        # The longer side counts.
        lengths = list(map(max, zip(*sides, strict=True)))
        request.scope["observed"] |= {
            "model": model.name,
            "sentences": len(rows),
            "tokens": sum(lengths),
        }
        try:
            results = await results_of(
                request, version, rows, lengths, call, limits
            )
        except UserError as error:
            # Only these have values that the model itself checks.
            if signature not in ("translate_given", "score"):
                raise
            raise RequestError(400, str(error)) from error
        outputs = as_outputs(call, results)
        if is_rows:
            return _json({"predictions": as_rows(outputs)})
        return _json({"outputs": outputs})

    async def status(
        request: Request, name: str, number: str | None = None
    ) -> Response:
        access.check(request)
        model = _model(models, name)
        states = model.states()
        if number is not None:
            states = {n: s for n, s in states.items() if str(n) == number}
        if not states:
            raise RequestError(
                404, f"Could not find version {number} of model {name}"
            )
        return _json(
            {
                "model_version_status": [
                    {
                        "version": str(n),
                        "state": state,
                        "status": {"error_code": "OK", "error_message": ""},
                    }
                    for n, state in sorted(states.items(), reverse=True)
                ]
            }
        )

    async def metadata(
        request: Request, name: str, number: str | None = None
    ) -> Response:
        access.check(request)
        model, version = find_version(models, name, number)
        # It may import TensorFlow, which takes seconds.
        definitions = await asyncio.to_thread(_definitions, version.engine)
        return _json(
            {
                "model_spec": {
                    "name": model.name,
                    "signature_name": "",
                    "version": str(version.number),
                },
                "metadata": {"signature_def": {"signature_def": definitions}},
            }
        )

    for prefix in (
        "/v1/models/{name}",
        "/v1/models/{name}/versions/{number}",
    ):
        routes.add_api_route(
            f"{prefix}:predict",
            predict,
            methods=["POST"],
            responses=ERRORS | _NOT_FOUND,
            openapi_extra={"requestBody": body},
            summary="Runs a signature, as TensorFlow Serving does.",
        )
        routes.add_api_route(
            f"{prefix}/metadata",
            metadata,
            methods=["GET"],
            responses={401: ERRORS[401], 403: ERRORS[403], **_NOT_FOUND},
            summary="Describes the signatures of a model.",
        )
        routes.add_api_route(
            prefix,
            status,
            methods=["GET"],
            responses={401: ERRORS[401], 403: ERRORS[403], **_NOT_FOUND},
            summary="Shows the versions of a model and their states.",
        )
    return routes


def find_version(
    models: ServedModels, name: str, number: str | None = None
) -> tuple[ServedModel, Version]:
    """Returns a model and its version, by default the newest one.

    Raises a `RequestError` if there is no such model or version.
    """
    model = _model(models, name)
    version = model.current
    if number is not None and str(version.number) != number:
        raise RequestError(
            404,
            f"Servable not found for request: Specific({name}, {number[:20]})",
        )
    return model, version


def _model(models, name):
    model = models.by_name.get(name)
    if model is None:
        raise RequestError(
            404, f"Servable not found for request: Latest({name[:60]})"
        )
    return model


def _definitions(engine):
    from google.protobuf.json_format import MessageToDict

    return {
        signature: MessageToDict(
            definition,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for signature, definition in engine.signature_definitions().items()
    }


def _named_inputs(asked, signature):
    """Returns the named inputs of a request in the row or column format."""
    if ("instances" in asked) == ("inputs" in asked):
        raise ValueError(
            "Missing 'inputs' or 'instances' key, or both are given"
        )
    names = ROW_INPUTS[signature]
    if "inputs" in asked:
        inputs = asked["inputs"]
        if not isinstance(inputs, dict) or set(inputs) == {"b64"}:
            if len(names) > 1:
                raise ValueError("'inputs' must be an object with names")
            inputs = {names[0]: inputs}
        return {name: _decoded(value) for name, value in inputs.items()}
    instances = asked["instances"]
    if not isinstance(instances, list) or not instances:
        raise ValueError("'instances' must be a list with values")
    rows = [
        value
        if isinstance(value, dict) and set(value) != {"b64"}
        else {names[0]: value}
        for value in instances
    ]
    if any(set(row) != set(rows[0]) for row in rows):
        raise ValueError("'instances' must all have the same names")
    for name in rows[0]:
        if name in NUMBERS:
            raise ValueError(
                f"{name} is one number for all sentences: use 'inputs'"
            )
    return {name: [_decoded(row[name]) for row in rows] for name in rows[0]}


def _decoded(value):
    """Returns a value with the text of each `{"b64": "..."}` in it."""
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if isinstance(value, dict) and set(value) == {"b64"}:
        try:
            return base64.b64decode(value["b64"], validate=True).decode()
        except (binascii.Error, TypeError, UnicodeDecodeError) as error:
            raise ValueError("'b64' must be UTF-8 text in base 64") from error
    return value


def _json(content):
    # With -Infinity, which hypotheses that do not exist have.
    return Response(json.dumps(content), media_type="application/json")
