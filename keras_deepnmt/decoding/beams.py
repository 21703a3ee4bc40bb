"""Shapes of beams: rows are sentence after sentence, `row = b * K + k`.

Also what every search agrees on: how long an output may be, what length does
to a score, and which ids may be produced at all.
"""

import keras
from keras import ops

from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, padding_mask

# Stands for log 0 in places that are compared or added: finite, so that no
# infinity meets a zero, and far below any sum of log-probabilities.
IMPOSSIBLE = -1.0e9
EXTRA_TOKENS = 50


def flatten_beams(x):
    """Joins sentences and beams: `(B, K, ...)` to `(B * K, ...)`."""
    shape = ops.shape(x)
    return ops.reshape(x, (-1, *shape[2:]))


def unflatten_beams(x, num_beams):
    """Parts sentences and beams: `(B * K, ...)` to `(B, K, ...)`."""
    shape = ops.shape(x)
    return ops.reshape(x, (-1, num_beams, *shape[1:]))


def flat_rows(beams, num_beams):
    """Turns each sentence's beam numbers `(B, J)` into rows of `(B * K, ...)`.

    Args:
        beams: int tensor `(B, J)`, entries in `[0, num_beams)`.
        num_beams: int. Beams K per sentence in the tensor to be read.

    Returns:
        int32 tensor `(B * J,)`.

    Example:
    >>> np.asarray(flat_rows(np.array([[1, 0], [2, 2]]), 3)).tolist()
    [1, 0, 5, 5]
    """
    beams = ops.cast(beams, "int32")
    first_rows = ops.arange(ops.shape(beams)[0], dtype="int32") * num_beams
    return ops.reshape(beams + first_rows[:, None], (-1,))


def gather_beams(x, beams):
    """Picks beams of each sentence: `(B, K, ...)` by `(B, J)` to `(B, J, ...)`.

    Args:
        x: tensor `(B, K, ...)`.
        beams: int tensor `(B, J)`. Beam to take for each place.

    Returns:
        Tensor `(B, J, ...)`.

    Example:
    >>> x = np.array([[10, 11, 12], [20, 21, 22]])
    >>> np.asarray(gather_beams(x, np.array([[2, 0], [1, 1]]))).tolist()
    [[12, 10], [21, 21]]
    """
    rows = flat_rows(beams, ops.shape(x)[1])
    return unflatten_beams(
        ops.take(flatten_beams(x), rows, axis=0), beams.shape[1]
    )


def reorder_cache(dynamic_cache, parents):
    """Hands each hypothesis the cache of the hypothesis it grew from.

    Args:
        dynamic_cache: nested dict of tensors `(B * K, ...)`.
        parents: int tensor `(B, K)`. Beam each hypothesis grew from.

    Returns:
        Nested dict like `dynamic_cache`.
    """
    rows = flat_rows(parents, parents.shape[1])
    return keras.tree.map_structure(
        lambda leaf: ops.take(leaf, rows, axis=0), dynamic_cache
    )


def score_divisor(length, length_penalty, length_offset=5.0):
    """Divides a sum of log-probabilities so that lengths can be compared.

    `((length_offset + length) / (length_offset + 1)) ** length_penalty`, where
    `length` counts the end id. An offset of 5 makes it the divisor of Wu et
    al. (2016), Eq. 14; 0 makes it `length ** length_penalty`, that of Gehring
    et al. (2017). A penalty of 0 leaves sums as they are; with offset 0, a
    penalty of 1 gives the mean.

    Args:
        length: int tensor or int. Produced tokens, the end id included; 0, a
            row that only fills up the batch, counts as 1, so that nothing is
            divided by zero.
        length_penalty: float, the exponent, at least 0.
        length_offset: float, at least 0.

    Returns:
        float32 tensor of the shape of `length`; at least 1, and never less for
        a greater length.

    Example:
    >>> float(score_divisor(7, 1.0)), float(score_divisor(7, 1.0, 0.0))
    (2.0, 7.0)
    """
    length = ops.cast(ops.maximum(length, 1), "float32")
    return ops.power(
        (length_offset + length) / (length_offset + 1.0), length_penalty
    )


def check_length_offset(length_offset):
    """Refuses an offset that no length can be added to.

    Args:
        length_offset: float.

    Raises:
        ValueError: if it is negative or no finite number.

    Example:
    >>> check_length_offset(0.0)
    """
    if not 0 <= length_offset < float("inf"):
        raise ValueError(
            "`length_offset` must be a finite number of at least 0. Received: "
            f"length_offset={length_offset}. Take 5 for the length penalty of "
            "GNMT, 0 for a plain power of the length."
        )


def output_limits(source_ids, max_length):
    """Says how many tokens each sentence may produce, the end id included.

    That is its real source length + 50, at most `max_length`; 0 for a row
    without any real token, which only fills up a batch.

    Args:
        source_ids: int tensor `(B, S)`.
        max_length: int or int scalar tensor. Steps of the loop.

    Returns:
        int32 tensor `(B,)`.

    Example:
    >>> ids = np.array([[7, 3, 0], [0, 0, 0]])
    >>> np.asarray(output_limits(ids, 99)).tolist()
    [52, 0]
    """
    lengths = ops.sum(ops.cast(padding_mask(source_ids), "int32"), axis=1)
    limits = ops.minimum(lengths + EXTRA_TOKENS, max_length)
    return ops.where(lengths > 0, limits, 0)


def loop_length(model, max_length):
    """Caps the steps of a search by the model's position range.

    Args:
        model: a model; its `max_length` is an int or `None` (no range).
        max_length: int or int scalar tensor.

    Returns:
        int where `max_length` is one, else an int32 scalar tensor.

    Raises:
        ValueError: if `max_length` is an int below 1.
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


def permitted_log_probs(log_probs, must_end):
    """Rules out padding and begin, and all but the end where it must end.

    Log-probabilities are not renormalised: the score of an output stays what
    the model gives to it.

    Args:
        log_probs: float tensor `(B * K, V)`.
        must_end: bool tensor `(B * K,)`, `True` where only the end id is left.

    Returns:
        float32 tensor `(B * K, V)`, `IMPOSSIBLE` for what is ruled out.
    """
    ids = ops.arange(log_probs.shape[-1], dtype="int32")[None]  # (1, V)
    is_end = ops.equal(ids, END_ID)
    is_special = ops.logical_or(
        ops.equal(ids, PADDING_ID), ops.equal(ids, BEGIN_ID)
    )
    permitted = ops.logical_or(
        is_end,
        ops.logical_not(ops.logical_or(is_special, must_end[:, None])),
    )  # (B * K, V)
    log_probs = ops.maximum(ops.cast(log_probs, "float32"), IMPOSSIBLE)
    return ops.where(permitted, log_probs, IMPOSSIBLE)


def write_step(ids, step, new_ids):
    """Writes each hypothesis' new id at position `step`.

    By `where`, since an update of a slice is no plain TensorFlow op and could
    not be served.

    Args:
        ids: int32 tensor `(..., M)`.
        step: int scalar tensor.
        new_ids: int32 tensor `(...)`.

    Returns:
        int32 tensor `(..., M)`.
    """
    positions = ops.arange(ops.shape(ids)[-1], dtype="int32")
    return ops.where(ops.equal(positions, step), new_ids[..., None], ids)
