"""The shapes that a model is compiled for before the first request."""

import math

from keras_deepnmt.translator.batches import padded_length, padded_rows
from keras_deepnmt.xla import tuned

# Shorter full batches have no shape of their own.
_SHORTEST = 16


def warm_up_shapes(
    batch_size: int, max_tokens: int, number: int
) -> list[tuple[int, int]]:
    """Returns shapes of sources, rows and length, to compile programs for.

    A batch of any other shape is padded to one of them of at most four times
    its size. There is one for full batches of each length up to its double,
    since under load nearly all batches are full. There are at most `number`
    shapes; `batch_size` is the largest number of rows, `max_tokens` the length
    of the longest source.
    """
    own = sorted(_batch_shapes(batch_size, max_tokens), key=math.prod)
    chosen = _full_batches(batch_size, max_tokens)[:number]
    for shape in reversed(own):
        if _padding(shape, chosen) > tuned.MUCH_LARGER_SHAPE:
            chosen.append(shape)
    while len(chosen) < min(number, len(own)):
        chosen.append(max(own, key=lambda shape: _padding(shape, chosen)))
    # Where that is not enough, plain graphs compute the largest batches.
    return chosen[-number:]


def _full_batches(batch_size, max_tokens):
    """Shapes of full batches, each twice as long as the next one."""
    length = padded_length(max_tokens)
    shapes = []
    while True:
        shapes.append((batch_size, length))
        if length <= _SHORTEST:
            return shapes
        length = padded_length(-(-length // 2))


def _batch_shapes(batch_size, max_tokens):
    """The shapes that batches of a translator have, also of a half."""
    half = math.ceil(batch_size / 2)
    rows = {
        padded_rows(number, largest)
        for largest in (batch_size, half)
        for number in range(1, largest + 1)
    }
    lengths = {padded_length(n + 1) for n in range(max_tokens)}
    return {(r, length) for r in rows for length in lengths}


def _padding(shape, chosen):
    """How many times as large a shape becomes by padding."""
    larger = [
        math.prod(other)
        for other in chosen
        if other[0] >= shape[0] and other[1] >= shape[1]
    ]
    return min(larger, default=math.inf) / math.prod(shape)
