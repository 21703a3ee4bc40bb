"""The web application of a server: its routes, errors, log and figures."""

import logging
import time
from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from keras_deepnmt.server.access import Access
from keras_deepnmt.server.json_log import described, log_event
from keras_deepnmt.server.libretranslate import ERRORS, libretranslate_routes
from keras_deepnmt.server.metrics import Metrics
from keras_deepnmt.server.page_files import page_files
from keras_deepnmt.server.page_routes import page_routes
from keras_deepnmt.server.request_errors import RequestError
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.served_models import ServedModels
from keras_deepnmt.server.tensorflow_rest import tensorflow_rest_routes
from keras_deepnmt.version import __version__

# A status that nginx uses where the client has gone; nobody reads it.
_GONE = 499


def make_app(
    models: ServedModels,
    limits: RequestLimits,
    access: Access,
    metrics: Metrics,
    allowed_origins: Sequence[str] = (),
    has_page: bool = True,
) -> FastAPI:
    """Makes the application.

    `metrics` has the figures of the server, which the models count, too. Pages
    of the web sites in `allowed_origins` may ask this server. With `has_page`
    there is a web page at `/`.
    """
    app = FastAPI(
        title="keras_deepnmt",
        version=__version__,
        summary="Translates sentences.",
        openapi_url="/openapi.json",
        # Their pages would load scripts from another site.
        docs_url=None,
        redoc_url=None,
    )
    all_routes = [libretranslate_routes, tensorflow_rest_routes]
    if has_page:
        all_routes.append(page_routes)
        app.include_router(page_files())
    for make_routes in all_routes:
        app.include_router(make_routes(models, limits, access))

    # Watchers of servers and proxies also ask for the head alone.
    hidden_text = {
        "include_in_schema": False,
        "response_class": PlainTextResponse,
    }

    @app.head("/healthz", **hidden_text)
    @app.get("/healthz", response_class=PlainTextResponse)
    async def healthz() -> str:
        """Answers while the server runs."""
        return "ok\n"

    @app.head("/readyz", **hidden_text)
    @app.get(
        "/readyz",
        response_class=PlainTextResponse,
        responses={503: ERRORS[503]},
    )
    async def readyz() -> str:
        """Answers 200 when all models are warm, else 503."""
        if not models.is_ready:
            raise RequestError(503, "the models are not ready yet.", 2)
        return "ready\n"

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses={s: ERRORS[s] for s in (401, 403)},
    )
    async def show_metrics(request: Request) -> Response:
        """Shows figures of the server, for Prometheus."""
        access.check(request)
        for model in models.by_name.values():
            metrics.waiting.labels(model.name).set(
                model.current.queue.num_waiting
            )
            metrics.is_ready.labels(model.name).set(model.is_ready)
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(RequestError)
    async def refuse(request: Request, error: RequestError) -> JSONResponse:
        headers = dict(error.headers)
        if error.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(
            {"error": error.message}, error.status, headers=headers
        )

    @app.exception_handler(HTTPException)
    async def explain(request: Request, error: HTTPException) -> JSONResponse:
        """For an unknown path or method, in the form of all errors."""
        return JSONResponse(
            {"error": error.detail}, error.status_code, headers=error.headers
        )

    @app.exception_handler(RequestValidationError)
    async def name(
        request: Request, error: RequestValidationError
    ) -> JSONResponse:
        """For a wrong parameter in the address, whose value is not shown."""
        first = error.errors()[0]
        place, rule = first["loc"][-1], first["msg"]
        message = f"`{place}` in the address is wrong: {rule}."
        return JSONResponse({"error": message}, 400)

    if allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(allowed_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
            expose_headers=["Retry-After", "X-Texts", "X-Texts-Cut"],
        )
    app.add_middleware(_Observer, metrics=metrics)
    return app


class _Observer:
    """Logs and counts each request, and answers where the code has a fault."""

    def __init__(self, app, metrics):
        self._app, self._metrics = app, metrics

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), None
        observed = scope["observed"] = {}

        async def note_status(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        except Exception as error:
            # Its message may hold a text of a user.
            log_event("fault", logging.ERROR, **described(error))
            if status is None:
                answer = JSONResponse(
                    {"error": "a fault of the server, which its log names."},
                    500,
                )
                await answer(scope, receive, note_status)
        seconds = time.monotonic() - start
        # Not the path itself, which may be a text.
        path = getattr(scope.get("route"), "path", "other")
        status = _GONE if status is None else status
        queued_s = observed.pop("queued_s", None)
        times = self._metrics.note_request(
            path, status, seconds, observed.get("model"), queued_s
        )
        log_event(
            "request",
            method=scope["method"] if len(scope["method"]) < 9 else "other",
            path=path,
            status=status,
            **times,
            **observed,
        )
