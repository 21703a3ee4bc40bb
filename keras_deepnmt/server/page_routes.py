"""What the web page asks for: translations with scores, and looks inside."""

import asyncio
import base64
import json
from math import isfinite
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from keras_deepnmt.errors import UserError
from keras_deepnmt.server.access import Access
from keras_deepnmt.server.answers import count_tokens, results_of, too_long
from keras_deepnmt.server.bodies import parsed_json, read_body
from keras_deepnmt.server.engine import Task
from keras_deepnmt.server.libretranslate import ERRORS
from keras_deepnmt.server.page_documents import PageDocument
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import ServedModels
from keras_deepnmt.server.signatures import Call
from keras_deepnmt.server.tensorflow_rest import find_version

_FOUND = ERRORS | {404: ERRORS[400] | {"description": "No such model."}}


class PageModel(BaseModel):
    """A model that the page offers, in one of its directions."""

    id: str = Field(description="Its name, with the target if it has several.")
    name: str
    into: str | None = Field(
        description="The target, where a request must choose it."
    )
    source: str
    target: str
    is_ready: bool
    most_translations: int = Field(description="The number of its beams.")
    tasks: list[str] = Field(
        description="`complete` (a given beginning), `inspect` and `lines`, "
        "where the model can do this."
    )


class PageModels(BaseModel):
    """The models, and what a page has to know of the server."""

    models: list[PageModel]
    needs_key: bool
    max_bytes: int


class PageSentence(BaseModel, extra="forbid"):
    """The body of a request to `/page/translate`."""

    model: str
    into: str | None = Field(
        None, description="Code of the language to translate into."
    )
    text: str = Field(description="A sentence.")
    prefix: str = Field("", description="What its translation begins with.")
    number: int = Field(4, ge=1, description="Number of translations.")


class PageTranslation(BaseModel):
    """A translation with its score."""

    text: str
    score: float
    log_prob: float
    truncated: bool


class PageTranslations(BaseModel):
    """The answer of `/page/translate`: the best translation first."""

    translations: list[PageTranslation]


class PagePair(BaseModel, extra="forbid"):
    """The body of a request to `/page/inspect`."""

    model: str
    into: str | None = Field(None, description="As in `/page/translate`.")
    source: str = Field(description="A sentence.")
    target: str = Field(description="A translation of it.")


class PageInspection(BaseModel):
    """What a model attends to while it writes a translation."""

    source: list[tuple[str, int | None]] = Field(
        description="Parts of the sentence with the numbers of its words."
    )
    target: list[tuple[str, int | None]]
    links: list[tuple[int, int]] = Field(
        description="Pairs of a source word and a target word."
    )
    attention: dict[str, Any] | None = Field(
        description="The attention to the source, as a map."
    )
    panels: list[dict[str, Any]] = Field(
        description="Maps of what the layers of a paper do, by paper."
    )


def page_routes(
    models: ServedModels,
    limits: RequestLimits,
    access: Access,
) -> APIRouter:
    """Makes the routes that the page asks."""
    routes = APIRouter(prefix="/page")

    async def asked_of(request, form):
        content = await read_body(request, limits)
        access.check(request)
        asked = form(**parsed_json(content, form))
        model, version = find_version(models, asked.model)
        return asked, model, version

    async def results(request, model, version, texts, row, kind):
        # Each alone: they are one sentence for the limit of their number.
        lengths = [
            (await count_tokens(version, [text], limits))[0] for text in texts
        ]
        request.scope["observed"] |= {
            "model": model.name,
            "sentences": 1,
            "tokens": lengths[0],
        }
        length = [max(lengths)]
        try:
            return await results_of(
                request, version, [row], length, kind, limits
            )
        except UserError as error:
            raise RequestError(400, str(error)) from error

    @routes.get("/models", response_model=PageModels)
    async def list_models() -> dict[str, Any]:
        """Lists the models for the page."""
        return {
            "models": [
                {
                    **_choice(model, direction),
                    "source": direction.source,
                    "target": direction.target,
                    "is_ready": model.is_ready,
                    "most_translations": model.current.engine.most_hypotheses,
                    "tasks": _tasks(model.current.engine),
                }
                for model in models.by_name.values()
                for direction in model.directions
            ],
            "needs_key": access.needs_key,
            "max_bytes": limits.max_bytes,
        }

    @routes.post(
        "/translate",
        response_model=PageTranslations,
        responses=_FOUND,
        openapi_extra=_body(PageSentence),
    )
    async def translate(request: Request) -> JSONResponse:
        """Translates a sentence, with scores and a given beginning."""
        asked, model, version = await asked_of(request, PageSentence)
        if not asked.text.strip():
            return JSONResponse({"translations": []})
        number = min(asked.number, version.engine.most_hypotheses)
        tag = _direction(model, asked.into).tag
        text = version.engine.tagged(asked.text, tag)
        texts = [text]
        if asked.prefix:
            texts.append(asked.prefix)
            if "translate_given" not in version.engine.signatures:
                raise RequestError(
                    400, f"{model.name} cannot complete a given beginning."
                )
            call = Call("translate_given", number)
            row: tuple = (text, asked.prefix, (), 0)
        else:
            call, row = Call("translate_nbest", number), (text,)
        [found] = await results(request, model, version, texts, row, call)
        if found["source_truncated"]:
            raise too_long(1, None, limits)
        names = ("text", "score", "log_prob", "truncated")
        columns = (found[name] for name in names)
        translations = [
            dict(zip(names, values, strict=True))
            for values in zip(*columns, strict=True)
        ]
        # The others stand for hypotheses that do not exist.
        existing = [t for t in translations if isfinite(t["log_prob"])]
        return JSONResponse({"translations": existing})

    @routes.post(
        "/inspect",
        response_model=PageInspection,
        responses=_FOUND,
        openapi_extra=_body(PagePair),
    )
    async def inspect(request: Request) -> JSONResponse:
        """Shows what a model attends to, for a sentence and a translation."""
        asked, model, version = await asked_of(request, PagePair)
        _check_task(model, version, "inspect")
        pair = (asked.source, asked.target)
        if not all(text.strip() for text in pair):
            raise RequestError(400, "`source` and `target` must have a word.")
        tag = _direction(model, asked.into).tag
        pair = (version.engine.tagged(asked.source, tag), asked.target)
        [found] = await results(
            request, model, version, list(pair), pair, Task("inspect")
        )
        return JSONResponse(found)

    @routes.post(
        "/document",
        response_class=Response,
        responses=_FOUND,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/octet-stream": {
                        "schema": {"type": "string", "format": "binary"}
                    }
                },
            }
        },
    )
    async def document(
        request: Request,
        model: str,
        name: str,
        into: str | None = None,
        source: str | None = None,
        progress: bool = False,
    ) -> Response:
        """Translates a document: plain text, XLIFF or TMX.

        `source` is its language, where the model translates several into one.
        With `progress` the answer is lines of JSON. Each says how many of the
        `texts` are `done`; the last one has the `document`, in Base64, and how
        many texts were `cut`, or an `error` with its `status`.
        """
        content = await read_body(request, limits)
        access.check(request)
        served, version = find_version(models, model)
        _check_task(served, version, "lines")
        direction = _direction(served, into, source)
        task = Task("lines", direction.source)
        engine = version.engine

        async def translate_lines(lines):
            lines = [engine.tagged(line, direction.tag) for line in lines]
            lengths = await asyncio.to_thread(engine.lengths, lines)
            return await results_of(
                request, version, lines, lengths, task, limits
            )

        request.scope["observed"] |= {"model": served.name}
        handed = PageDocument(content, name, direction[:2])
        await handed.read()
        request.scope["observed"] |= {"sentences": handed.num_texts}
        steps = handed.translate(
            translate_lines, limits, engine.batch_size * engine.num_threads
        )
        if progress:
            return StreamingResponse(
                _progress_lines(handed, steps),
                media_type="application/x-ndjson",
                # A proxy such as nginx would hold the lines back.
                headers={"X-Accel-Buffering": "no"},
            )
        async for _ in steps:
            pass
        return Response(
            await handed.written(),
            media_type="application/octet-stream",
            headers={
                "X-Texts": str(handed.num_texts),
                "X-Texts-Cut": str(handed.num_cut),
            },
        )

    return routes


async def _progress_lines(handed, steps):
    """Yields lines of JSON: how far a document is, and at the end itself."""

    def line(**content):
        return json.dumps(content) + "\n"

    texts = handed.num_texts
    yield line(done=0, texts=texts)
    try:
        async for done in steps:
            yield line(done=done, texts=texts)
        content = base64.b64encode(await handed.written()).decode()
    except RequestError as error:
        # The status was sent before.
        yield line(error=error.message, status=error.status)
    else:
        yield line(
            done=texts, texts=texts, cut=handed.num_cut, document=content
        )


def _body(form):
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": form.model_json_schema()}
            },
        }
    }


def _tasks(engine):
    return sorted([*engine.tasks, *(["complete"] if engine.completes else [])])


def _choice(model, direction):
    """How a request chooses a model, and one of its directions."""
    if len(model.directions) == 1:
        return {"id": model.name, "name": model.name, "into": None}
    source, target, _ = direction
    return {
        "id": f"{model.name} {source}-{target}",
        "name": model.name,
        "into": target,
    }


def _direction(model, into, source=None):
    direction = model.direction_into(into, source)
    if direction is None and model.direction_into(into) is not None:
        raise RequestError(
            400,
            f"`source` must be a language that {model.name} translates into "
            f"{into}. Received: {source[:20]}",
        )
    if direction is None:
        known = ", ".join(dict.fromkeys(d.target for d in model.directions))
        raise RequestError(
            400,
            f"`into` must be a language that {model.name} translates into: "
            f"{known}. Received: {into[:20]}",
        )
    return direction


def _check_task(model, version, name):
    if name not in version.engine.tasks:
        raise RequestError(
            400,
            f"the model {model.name} cannot do this: it is an export, which "
            "only translates. Serve the run that it was made of.",
        )
