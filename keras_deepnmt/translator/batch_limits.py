"""The limits of a batch: numbers of sentences, tokens and added padding."""

from numbers import Real

# Tokens per sentence of a full batch. Only longer sentences make it smaller.
TOKENS_PER_SENTENCE = 256
# Searching so much padding takes less time than a compilation.
COMPILATION_PADDING = 2_048


class BatchLimits:
    """The largest numbers of sentences and tokens computed together.

    They may be changed later. `batch_tokens` is 256 times `batch_size` unless
    it is given.

    `compilation_padding` is the largest number of positions of padding that a
    call may add to sources so that one shape less is compiled: few sentences of
    a length are then searched with longer ones. More of it makes the first call
    end sooner, and later calls take longer.

    Example:
    >>> limits = BatchLimits(16)
    >>> limits.batch_size = 8
    >>> limits.batch_tokens
    2048
    """

    def __init__(self, batch_size: int, batch_tokens: int | None = None):
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.compilation_padding = COMPILATION_PADDING

    @property
    def batch_size(self) -> int:
        return self._batch_size

    @batch_size.setter
    def batch_size(self, batch_size: int) -> None:
        self._batch_size = as_integer("batch_size", batch_size, 1)

    @property
    def batch_tokens(self) -> int:
        if self._batch_tokens is None:
            return TOKENS_PER_SENTENCE * self.batch_size
        return self._batch_tokens

    @batch_tokens.setter
    def batch_tokens(self, batch_tokens: int | None) -> None:
        if batch_tokens is not None:
            batch_tokens = as_integer("batch_tokens", batch_tokens, 1)
        self._batch_tokens = batch_tokens

    @property
    def compilation_padding(self) -> int:
        return self._compilation_padding

    @compilation_padding.setter
    def compilation_padding(self, compilation_padding: int) -> None:
        self._compilation_padding = as_integer(
            "compilation_padding", compilation_padding, 0
        )


class BatchLimitAttributes:
    """Makes the limits of `self.batch_limits` attributes of an object."""

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

    @property
    def compilation_padding(self) -> int:
        return self.batch_limits.compilation_padding

    @compilation_padding.setter
    def compilation_padding(self, compilation_padding: int) -> None:
        self.batch_limits.compilation_padding = compilation_padding


def as_integer(name: str, number: float, least: int) -> int:
    """Returns an argument as an int, also if it is a whole float.

    Raises:
        ValueError: if the argument `name` is no integer, or below `least`.

    Example:
    >>> as_integer("batch_size", 32.0, 1)
    32
    """
    is_number = isinstance(number, Real)
    if not is_number or not number >= least or number % 1:
        raise ValueError(
            f"`{name}` must be an integer of at least {least}. "
            f"Received: {name}={number}"
        )
    return int(number)
