"""The files of the web page, and what a browser may do with them."""

from importlib import resources

from fastapi import APIRouter
from fastapi.responses import Response

from keras_deepnmt.server.request_errors import RequestError

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    # Nothing of another address, and no script or style within the page.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # A newer version of the package has newer files.
    "Cache-Control": "no-cache",
}


def page_files() -> APIRouter:
    """Makes the routes of the page's files: `/` and `/page/files/NAME`."""
    files = {
        file.name: file.read_bytes()
        for file in resources.files("keras_deepnmt.server")
        .joinpath("page")
        .iterdir()
        if file.name.rpartition(".")[2] in _TYPES
    }
    routes = APIRouter(include_in_schema=False)

    def answer(name):
        kind = _TYPES[name.rpartition(".")[2]]
        return Response(files[name], media_type=kind, headers=_HEADERS)

    @routes.head("/")
    @routes.get("/")
    async def page() -> Response:
        return answer("index.html")

    @routes.get("/page/files/{name}")
    async def file(name: str) -> Response:
        if name not in files:
            raise RequestError(404, "the page has no such file.")
        return answer(name)

    return routes
