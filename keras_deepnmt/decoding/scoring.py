"""Log-probabilities of given translations, by teacher forcing."""

import keras
from keras import ops

from keras_deepnmt.decoding.hypotheses import check_ids
from keras_deepnmt.masks import padding_mask
from keras_deepnmt.xla import tuned


def score_targets(model, source_ids, target_ids, labels):
    """Gives the log-probability of each token of given translations.

    Each token is scored given the source and the tokens before it. The sum of
    a row equals the `log_probs` that a search returns for those ids.

    Scores `(B, T, V)` of large batches would not fit into memory. So a batch of
    more than 1,024 target positions is decoded in parts of fewer rows, one part
    after another, each with at most 1,024 positions or a single row.

    Args:
        model: a model of this package, of which only the methods that every
            model has are used.
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s.
        target_ids: int tensor `(B, T)`: id 2, then the target, then 0s.
        labels: int tensor `(B, T)`: the target, then id 3, then 0s.

    Returns:
        float32 tensor `(B, T)`, 0 at padding.

    Raises:
        ValueError: if an argument does not have two dimensions.

    Example:
    >>> target_ids, labels = np.array([[2, 7]]), np.array([[7, 3]])
    >>> score_targets(model, source_ids[:1], target_ids, labels).shape
    TensorShape([1, 2])
    """
    check_ids(source_ids=source_ids, target_ids=target_ids, labels=labels)
    memory = model.encode(source_ids)
    num_rows, length = ops.shape(labels)
    positions = tuned.SCORED_POSITIONS
    if isinstance(num_rows, int) and isinstance(length, int):
        num_parts = -(-num_rows // max(1, positions // max(1, length)))
        if num_parts <= 1:
            return _label_log_probs(model, memory, target_ids, labels)
    else:  # the open shapes of an exported graph
        num_parts = -(-num_rows // ops.maximum(positions // length, 1))
    parts = keras.tree.map_structure(
        lambda x: _split_rows(x, num_parts), (memory, target_ids, labels)
    )
    by_part = ops.map(lambda part: _label_log_probs(model, *part), parts)
    return _join_rows(by_part, num_rows)


def _label_log_probs(model, memory, target_ids, labels):
    log_probs = model.log_probs(model.decode(target_ids, memory))  # (B, T, V)
    label_ids = ops.cast(labels, "int32")[..., None]
    label_log_probs = ops.take_along_axis(log_probs, label_ids, axis=-1)[..., 0]
    return ops.where(
        padding_mask(labels), ops.cast(label_log_probs, "float32"), 0.0
    )


def _split_rows(x, num_parts):
    """Splits rows `(B, ...)` into parts `(P, R, ...)`; rows of zeros are added.

    Part p has the rows p, P + p, 2P + p and so on: if devices have blocks of
    rows, each of them has its share of every part.
    """
    shape = ops.shape(x)
    x = ops.pad(x, [(0, -shape[0] % num_parts)] + [(0, 0)] * (len(shape) - 1))
    x = ops.reshape(x, (-1, num_parts, *shape[1:]))
    return ops.swapaxes(x, 0, 1)


def _join_rows(x, num_rows):
    """Undoes `_split_rows` for values `(P, R, T)`."""
    length = ops.shape(x)[-1]
    return ops.reshape(ops.swapaxes(x, 0, 1), (-1, length))[:num_rows]
