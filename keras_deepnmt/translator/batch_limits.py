"""The limits of a batch: a number of sentences and a number of tokens."""

# Tokens per sentence of a full batch. Only longer sentences make it smaller.
TOKENS_PER_SENTENCE = 256


class BatchLimits:
    """The largest numbers of sentences and tokens computed together.

    Both may be changed later. `batch_tokens` is 256 times `batch_size` unless
    it is given.

    Example:
    >>> limits = BatchLimits(16)
    >>> limits.batch_size = 8
    >>> limits.batch_tokens
    2048
    """

    def __init__(self, batch_size: int, batch_tokens: int | None = None):
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens

    @property
    def batch_size(self) -> int:
        return self._batch_size

    @batch_size.setter
    def batch_size(self, batch_size: int) -> None:
        _check_at_least_one("batch_size", batch_size)
        self._batch_size = batch_size

    @property
    def batch_tokens(self) -> int:
        if self._batch_tokens is None:
            return TOKENS_PER_SENTENCE * self.batch_size
        return self._batch_tokens

    @batch_tokens.setter
    def batch_tokens(self, batch_tokens: int | None) -> None:
        if batch_tokens is not None:
            _check_at_least_one("batch_tokens", batch_tokens)
        self._batch_tokens = batch_tokens


class BatchLimitAttributes:
    """Makes the two limits of `self.batch_limits` attributes of an object."""

    batch_limits: BatchLimits

    @property
    def batch_size(self) -> int:
        return self.batch_limits.batch_size

    @batch_size.setter
    def batch_size(self, batch_size: int) -> None:
        self.batch_limits.batch_size = batch_size

    @property
    def batch_tokens(self) -> int:
        return self.batch_limits.batch_tokens

    @batch_tokens.setter
    def batch_tokens(self, batch_tokens: int | None) -> None:
        self.batch_limits.batch_tokens = batch_tokens


def _check_at_least_one(name, number):
    if number != int(number) or number < 1:
        raise ValueError(
            f"`{name}` must be an integer of at least 1. "
            f"Received: {name}={number}"
        )
