"""The largest values of long rows, found block by block."""

import math

from keras import ops

from keras_deepnmt.decoding.hypotheses import IMPOSSIBLE


def blockwise_top_k(x, k):
    """Finds the `k` largest values of each row, as `ops.top_k`, but faster.

    They are in the `k` blocks with the largest maxima: any other block has only
    values that are at most as large as `k` others. So one pass over the rows
    computes the maxima, and of each row only these and `k` blocks are sorted:
    with blocks of `sqrt(V / k)` values that is least, `2 sqrt(k V)`. Of equal
    values the first one counts, as for `ops.top_k`.

    Args:
        x: float tensor `(R, V)`, V static.
        k: int, at most V.

    Returns:
        The values `(R, k)`, largest first, and their places int32 `(R, k)`.

    Example:
    >>> values, places = blockwise_top_k(np.arange(600.0)[None], 2)
    >>> np.asarray(values).tolist(), np.asarray(places).tolist()
    ([[599.0, 598.0]], [[599, 598]])
    """
    size = x.shape[-1]
    block_size = _block_size(size, k)
    num_blocks = -(-size // block_size)
    if num_blocks <= k:
        values, places = ops.top_k(x, k)
        return values, ops.cast(places, "int32")
    if size % block_size:
        x = ops.pad(
            x,
            [[0, 0], [0, num_blocks * block_size - size]],
            constant_values=2 * IMPOSSIBLE,
        )
    blocks = ops.reshape(x, (-1, num_blocks, block_size))
    _, best = ops.top_k(ops.max(blocks, axis=-1), k)  # (R, k)
    # In the order of the row, so that of equal values the first one is found.
    best = ops.sort(ops.cast(best, "int32"), axis=-1)
    candidates = ops.take_along_axis(blocks, best[..., None], axis=1)
    values, places = ops.top_k(ops.reshape(candidates, (-1, k * block_size)), k)
    places = ops.cast(places, "int32")
    block = ops.take_along_axis(best, places // block_size, axis=1)
    return values, block * block_size + places % block_size


def _block_size(size, k):
    """Returns the block size for rows of a size.

    A size that divides the row is better: padding costs about as much as the
    search for the maxima.
    """
    best = max(1, round(math.sqrt(size / k)))
    near = range(best // 2 + 1, 2 * best)
    sizes = sorted(near, key=lambda n: abs(n - best))
    return next((n for n in sizes if size % n == 0), best)
