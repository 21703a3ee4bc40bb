"""Refuses requests without a key that the server knows."""

from starlette.requests import Request

from keras_deepnmt.server.api_keys import ApiKeys
from keras_deepnmt.server.request_errors import RequestError


class Access:
    """Decides which requests are answered.

    Args:
        keys: the keys that clients may have.
    """

    def __init__(self, keys: ApiKeys):
        self._keys = keys

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key."""
        return len(self._keys) > 0

    def check(self, request: Request, key: str | None = None) -> None:
        """Refuses a request without a right key.

        Args:
            request: the request, whose header `Authorization: Bearer KEY` or
                `X-API-Key: KEY` may have it.
            key: the key in its body, if there is one.

        Raises:
            RequestError: if the key is missing or wrong.
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
