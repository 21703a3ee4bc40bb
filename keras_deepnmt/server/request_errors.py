"""The error that ends a request, with its status of HTTP."""


class RequestError(Exception):
    """Ends a request; the client gets `{"error": message}`.

    Args:
        status: the status of HTTP.
        message: one line that says what is wrong and what to do.
        retry_after_s: whole seconds after which to try again, where that may
            help.

    Example:
    >>> RequestError(429, "no room", retry_after_s=2).headers
    {'Retry-After': '2'}
    """

    def __init__(
        self, status: int, message: str, retry_after_s: int | None = None
    ):
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = (
            {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        )
