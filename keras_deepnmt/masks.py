"""Special ids, and masks: `True` = real token, or may attend.

Keras is imported by the functions that need it, since preparing a corpus needs
only the ids.
"""

PADDING_ID = 0
UNKNOWN_ID = 1
BEGIN_ID = 2
END_ID = 3


def padding_mask(ids):
    """Marks the real tokens of a batch of ids.

    Args:
        ids: int tensor `(B, S)`; id 0 is padding.

    Returns:
        Bool tensor `(B, S)`, `True` = real token.

    Example:
    >>> np.asarray(padding_mask(np.array([[7, 3, 0]]))).tolist()
    [[True, True, False]]
    """
    from keras import ops

    return ops.not_equal(ids, PADDING_ID)


def relative_positions(length, num_keys=None, start=0):
    """Computes how many positions each key comes after each query.

    Args:
        length: int or int scalar tensor. Number of queries T.
        num_keys: int or int scalar tensor. Number of keys S; the first key is
            at position 0. Defaults to `length`.
        start: int or int scalar tensor. Position of the first query.

    Returns:
        Int tensor `(T, S)`: entry `[t, s]` is `s - (start + t)`, negative for
        a key before the query.

    Example:
    >>> np.asarray(relative_positions(2, 3)).tolist()
    [[0, 1, 2], [-1, 0, 1]]
    """
    from keras import ops

    queries = ops.arange(length) + start
    keys = ops.arange(length if num_keys is None else num_keys)
    return keys - ops.expand_dims(queries, 1)


def ancestor_mask(ancestors, position):
    """Lets each hypothesis attend to its own positions, the newest included.

    The K hypotheses of a sentence share a cache of `M K` slots. Position m of a
    hypothesis is in slot `m K + j`, where j was its number at that step.

    Args:
        ancestors: int tensor `(B, K, M)`: the numbers j.
        position: int or int scalar tensor. Position of this step, at which each
            hypothesis is in the slot of its own number; later ones are hidden.

    Returns:
        Bool tensor `(B, K, M * K)`, `True` = may attend.

    Example: hypothesis 0 was number 1 at position 0.
    >>> ancestors = np.array([[[1, 0], [1, 0]]])
    >>> np.asarray(ancestor_mask(ancestors, 1))[0].astype(int).tolist()
    [[0, 1, 1, 0], [0, 1, 0, 1]]
    """
    from keras import ops

    batch_size, num_beams, length = ops.shape(ancestors)
    positions = ops.arange(length, dtype="int32")
    beams = ops.arange(num_beams, dtype="int32")
    own = ops.expand_dims(beams, 1)  # (K, 1)
    ancestors = ops.where(ops.equal(positions, position), own, ancestors)
    ancestors = ops.expand_dims(ancestors, -1)
    is_ancestor = ops.equal(ancestors, beams)  # (B, K, M, K)
    is_past = ops.expand_dims(positions <= position, 1)  # (M, 1)
    mask = ops.logical_and(is_ancestor, is_past)
    return ops.reshape(mask, (batch_size, num_beams, length * num_beams))


def merge_attention_masks(*masks):
    """Combines attention masks: a key is visible iff every mask allows it.

    Args:
        *masks: bool tensors that broadcast to `(B, T, S)`, or `None`.

    Returns:
        Bool tensor that broadcasts to `(B, T, S)`, or `None` if all are `None`.

    Example:
    >>> merge_attention_masks(None, None) is None
    True
    """
    from keras import ops

    present = [mask for mask in masks if mask is not None]
    if not present:
        return None
    merged = present[0]
    for mask in present[1:]:
        merged = ops.logical_and(merged, mask)
    return merged
