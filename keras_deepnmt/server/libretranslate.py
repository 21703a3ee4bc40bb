"""`/translate` and `/languages`, in the form of LibreTranslate.

Editors and tools of translators speak it. Its keys `q`, `source`, `target` and
`alternatives` are as there; of its formats there is `text` alone.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from keras_deepnmt.server.access import Access
from keras_deepnmt.server.answers import count_tokens, results_of, too_long
from keras_deepnmt.server.bodies import parsed_fields, read_body
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import ServedModels


def _texts(value):
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("be text, or a list of texts")
    return value


class TranslateRequest(BaseModel, extra="ignore"):
    """The body of a request to `/translate`."""

    q: Annotated[
        Any,
        BeforeValidator(_texts),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}},
                ]
            }
        ),
    ] = Field(description="A sentence, or a list of sentences.")
    source: str = Field(
        description="Code of their language, or `auto` where there is one "
        "choice."
    )
    target: str = Field(description="Code of the language to translate to.")
    format: Literal["text"] = "text"
    alternatives: int = Field(
        0, ge=0, description="Number of further translations of each sentence."
    )
    api_key: str | None = Field(
        None, description="A key, where the server asks for one."
    )


class DetectedLanguage(BaseModel):
    """The language of a sentence, where the source was `auto`."""

    language: str
    confidence: float = Field(description="100, the whole: it is the only one.")


class TranslateAnswer(BaseModel):
    """The answer of `/translate`: of a list, lists."""

    translatedText: str | list[str]
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class Language(BaseModel):
    """A language, and those that it is translated to."""

    code: str
    name: str
    targets: list[str]


class ErrorAnswer(BaseModel):
    """The answer to a request that cannot be answered."""

    error: str


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": description}
    for status, description in (
        (400, "The request is wrong; `error` says how."),
        (401, "The server asks for a key."),
        (403, "The key is wrong."),
        (408, "The body did not come in time."),
        (413, "The body, or the number of sentences, is too large."),
        (415, "The body has another type."),
        (429, "Too many sentences wait; `Retry-After` has seconds."),
        (500, "A fault of the server."),
        (503, "The model is not ready yet, or the server stops."),
        (504, "There was no translation in time."),
    )
}


def libretranslate_routes(
    models: ServedModels,
    limits: RequestLimits,
    access: Access,
) -> APIRouter:
    """Makes the routes of `/translate` and `/languages`."""
    routes = APIRouter()
    schema = {"schema": TranslateRequest.model_json_schema()}

    @routes.post(
        "/translate",
        response_model=TranslateAnswer,
        responses=ERRORS,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": schema,
                    "application/x-www-form-urlencoded": schema,
                },
            }
        },
    )
    async def translate(request: Request) -> JSONResponse:
        """Translates a sentence, or a list of sentences."""
        content = await read_body(request, limits)
        fields = parsed_fields(
            content, request.headers.get("content-type", ""), TranslateRequest
        )
        access.check(request, fields.get("api_key"))
        asked = TranslateRequest(**fields)
        chosen = models.choose(asked.source, asked.target)
        if chosen is None:
            raise _not_supported(models, asked)
        source, model, tag = chosen
        version = model.current
        number = 1 + asked.alternatives
        most = version.engine.most_hypotheses
        if number > most:
            raise RequestError(
                400,
                f"`alternatives` must be at most {most - 1}, of which the "
                f"model {model.name} is capable. Received: "
                f"{asked.alternatives}",
            )
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        # In the text, so that one batch may have sentences of several tags.
        texts = [version.engine.tagged(text, tag) for text in texts]
        lengths = await count_tokens(version, texts, limits)
        request.scope["observed"] |= {
            "model": model.name,
            "sentences": len(texts),
            "tokens": sum(lengths),
        }
        found = await results_of(
            request, version, texts, lengths, number, limits
        )
        for place, translations in enumerate(found, start=1):
            if translations[0].source_truncated:
                raise too_long(place, None, limits)
        best = [translations[0].text for translations in found]
        answer: dict[str, Any] = {"translatedText": best}
        if asked.source == "auto":
            language = {"language": source, "confidence": 100.0}
            answer["detectedLanguage"] = [language] * len(best)
        if asked.alternatives:
            answer["alternatives"] = [
                [other.text for other in translations[1:]]
                for translations in found
            ]
        if isinstance(asked.q, str):
            answer = {name: value[0] for name, value in answer.items()}
        return JSONResponse(answer)

    @routes.get("/languages", response_model=list[Language])
    async def languages() -> list[dict[str, Any]]:
        """Lists the languages, and those that each is translated to."""
        return [
            {"code": code, "name": code, "targets": targets}
            for code, targets in models.targets().items()
        ]

    return routes


def _not_supported(models, asked):
    pairs = [
        f"{source} to {target}"
        for source, targets in models.targets().items()
        for target in targets
    ]
    return RequestError(
        400,
        "`source` and `target` must be languages of a model: "
        f"{', '.join(pairs)}. Received: {asked.source[:20]} to "
        f"{asked.target[:20]}",
    )
