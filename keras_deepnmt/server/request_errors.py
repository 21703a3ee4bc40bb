"""The error that ends a request, with its status of HTTP."""


class RequestError(Exception):
    """Ends a request; the client gets `{"error": message}`.

    The message is one line that says what is wrong and what to do, and `status`
    is that of HTTP. Where it may help to try again, `retry_after_s` says after
    how many whole seconds.
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
