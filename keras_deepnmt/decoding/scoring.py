"""Log-probabilities of given translations, by teacher forcing."""

from keras import ops

from keras_deepnmt.decoding.hypotheses import check_ids
from keras_deepnmt.masks import padding_mask


def score_targets(model, source_ids, target_ids, labels):
    """Gives the log-probability of each token of given translations.

    Each token is scored given the source and the tokens before it. The sum of
    a row equals the `log_probs` that a search returns for those ids.

    Args:
        model: a model of this package (its contract is all that is used).
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s.
        target_ids: int tensor `(B, T)`: id 2, then the target, then 0s.
        labels: int tensor `(B, T)`: the target, then id 3, then 0s.

    Returns:
        float32 tensor `(B, T)`, 0 at padding.

    Raises:
        ValueError: if an argument has not two dimensions.

    Example:
    >>> target_ids, labels = np.array([[2, 7]]), np.array([[7, 3]])
    >>> score_targets(model, source_ids[:1], target_ids, labels).shape
    TensorShape([1, 2])
    """
    check_ids(source_ids=source_ids, target_ids=target_ids, labels=labels)
    memory = model.encode(source_ids)
    log_probs = model.log_probs(model.decode(target_ids, memory))  # (B, T, V)
    label_ids = ops.cast(labels, "int32")[..., None]
    label_log_probs = ops.take_along_axis(log_probs, label_ids, axis=-1)[..., 0]
    return ops.where(
        padding_mask(labels), ops.cast(label_log_probs, "float32"), 0.0
    )
