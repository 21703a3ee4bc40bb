"""What a server accepts in one request, and how long it works on it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestLimits:
    """The limits of a server.

    Args:
        max_bytes: bytes of the body of a request.
        max_sentences: sentences of a request.
        max_tokens: tokens of a sentence, the end token included.
        max_waiting: sentences that wait for a model. A request for which there
            is no room is refused.
        timeout_s: seconds for a request: for its body, and then until its
            translations are found.

    Example:
    >>> RequestLimits(max_sentences=10).max_tokens
    256
    """

    max_bytes: int = 1_000_000
    max_sentences: int = 256
    max_tokens: int = 256
    max_waiting: int = 4096
    timeout_s: float = 60.0
