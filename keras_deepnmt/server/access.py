"""Refuses requests without a key that the server knows."""

from starlette.requests import Request

from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.request_errors import RequestError


class Access:
    """Decides by the keys of clients which requests are answered."""

    def __init__(self, keys: ApiKeys):
        self._keys = keys

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key."""
        return len(self._keys) > 0

    def check(self, request: Request, key: str | None = None) -> None:
        """Refuses a request without a right key.

        The key may be in the body (`key`), or in the header `Authorization:
        Bearer KEY` or `X-API-Key: KEY`. Raises a `RequestError` if it is
        missing or wrong.
        """
        kind, _, bearer = request.headers.get("authorization", "").partition(
            " "
        )
        if kind.lower() == "bearer":
            key = key or bearer.strip()
        key = key or request.headers.get("x-api-key")
        if self._keys.accept(key):
            return
        if key:
            raise RequestError(403, "the API key is wrong.")
        raise RequestError(
            401,
            "an API key is needed. Give it as `api_key`, or in the header "
            "`Authorization: Bearer KEY`.",
        )
