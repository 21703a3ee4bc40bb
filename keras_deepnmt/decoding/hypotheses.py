"""Arrays of hypotheses, and their maximum length.

Hypothesis k of sentence b is in row `b * K + k`.
"""

import math

import numpy as np
from keras import ops

from keras_deepnmt.masks import padding_mask

# Stands for log 0. It is finite, so that sums and products of it are never
# NaN, and far below any sum of log-probabilities.
IMPOSSIBLE = -1.0e9
# Rounding errors of float32 products are smaller. Without it 1.1 times 10 could
# be 12 after rounding up.
_ROUNDING = 1e-6


def flatten_beams(x):
    """Joins sentences and beams: `(B, K, ...)` to `(B * K, ...)`."""
    shape = ops.shape(x)
    return ops.reshape(x, (-1, *shape[2:]))


def unflatten_beams(x, num_beams):
    """Splits sentences and beams: `(B * K, ...)` to `(B, K, ...)`."""
    shape = ops.shape(x)
    return ops.reshape(x, (-1, num_beams, *shape[1:]))


def flat_rows(beams, num_beams):
    """Turns beam numbers `(B, J)` into rows `(B * J,)` of `(B * K, ...)`.

    Example:
    >>> np.asarray(flat_rows(np.array([[1, 0], [2, 2]]), 3)).tolist()
    [1, 0, 5, 5]
    """
    beams = ops.cast(beams, "int32")
    first_rows = ops.arange(ops.shape(beams)[0], dtype="int32") * num_beams
    return ops.reshape(beams + first_rows[:, None], (-1,))


def gather_beams(x, beams):
    """Takes beams `(B, J)` of each sentence of `(B, K, ...)`: `(B, J, ...)`.

    Example:
    >>> x = np.array([[10, 11, 12], [20, 21, 22]])
    >>> np.asarray(gather_beams(x, np.array([[2, 0], [1, 1]]))).tolist()
    [[12, 10], [21, 21]]
    """
    rows = flat_rows(beams, ops.shape(x)[1])
    return unflatten_beams(
        ops.take(flatten_beams(x), rows, axis=0), ops.shape(beams)[1]
    )


def longest_output(source_length, options):
    """Returns the maximum length of the translations of sources of a length.

    Both lengths include the end id. The result is an int if `source_length` is
    one and `options.max_length_ratio` is a number, otherwise an int32 tensor.
    """
    ratio = options.max_length_ratio
    if isinstance(source_length, int) and isinstance(ratio, float):
        rounded = math.ceil(ratio * source_length * (1 - _ROUNDING))
    else:
        length = ops.cast(source_length, "float32")
        scaled = ops.ceil(ratio * length * (1 - _ROUNDING))
        rounded = ops.cast(scaled, "int32")
    return rounded + options.max_extra_tokens


def output_limits(
    source_ids, max_length, options, prefix_ids=None, max_lengths=None
):
    """Returns the maximum number of tokens of each translation: int32 `(B,)`.

    It includes the end id and is the sentence's own maximum length
    `max_lengths` `(B,)` where that is above 0, otherwise the maximum that
    `options` give for its number of tokens. It is at least one more than its
    prefix has, and at most `max_length`; 0 for a row of padding, which only
    fills up a batch.
    """
    check_ids(source_ids=source_ids)
    lengths = ops.sum(ops.cast(padding_mask(source_ids), "int32"), axis=1)
    limits = longest_output(lengths, options)
    if max_lengths is not None:
        own = ops.cast(max_lengths, "int32")
        limits = ops.where(own > 0, own, limits)
    if prefix_ids is not None:
        check_ids(prefix_ids=prefix_ids)
        forced = ops.sum(ops.cast(padding_mask(prefix_ids), "int32"), axis=1)
        limits = ops.maximum(limits, forced + 1)
    limits = ops.minimum(limits, max_length)
    return ops.where(lengths > 0, ops.maximum(limits, 1), 0)


def check_ids(**arrays):
    """Raises a `ValueError` if ids are not one row per sentence."""
    for name, ids in arrays.items():
        shape = tuple(ids.shape if hasattr(ids, "shape") else np.shape(ids))
        if len(shape) != 2:
            raise ValueError(
                f"`{name}` must have the shape (number of sentences, number "
                "of tokens), each row filled up with 0s. Received: shape "
                f"{shape}. Use `{name}[None]` for the ids of one sentence."
            )


def loop_length(model, max_length):
    """Returns `max_length`, but at most the model's own `max_length`, if any.

    The result is an int if the argument is one, otherwise an int32 tensor. An
    int below 1 raises a `ValueError`.
    """
    if isinstance(max_length, int) and max_length < 1:
        raise ValueError(
            "`max_length` must be at least 1. "
            f"Received: max_length={max_length}"
        )
    if model.max_length is None:
        return max_length
    if isinstance(max_length, int):
        return min(max_length, model.max_length)
    return ops.minimum(max_length, model.max_length)


def write_step(ids, step, new_ids):
    """Writes new ids `(...)` at position `step` of ids `(..., M)`.

    It uses `where`, since TensorFlow Serving cannot run the op that updates a
    slice.
    """
    positions = ops.arange(ops.shape(ids)[-1], dtype="int32")
    return ops.where(ops.equal(positions, step), new_ids[..., None], ids)
