"""Log-probabilities of given translations, all tokens at once."""

from keras import ops

from keras_deepnmt.masks import padding_mask


def score_targets(model, source_ids, target_ids, labels):
    """Gives the log-probability of each token of given translations.

    By teacher forcing: token t is scored given the tokens before it. The sum
    over a row equals the `log_probs` that a search reports for those ids.

    Args:
        model: a model of this package (its contract is all that is used).
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s.
        target_ids: int tensor `(B, T)`: id 2, then the target, then 0s.
        labels: int tensor `(B, T)`: the target, then id 3, then 0s.

    Returns:
        float32 tensor `(B, T)`, 0 at padding.

    Example:
    >>> target_ids, labels = np.array([[2, 7]]), np.array([[7, 3]])
    >>> score_targets(model, source_ids[:1], target_ids, labels).shape
    TensorShape([1, 2])
    """
    memory = model.encode(source_ids)
    log_probs = model.log_probs(model.decode(target_ids, memory))  # (B, T, V)
    indices = ops.cast(labels, "int32")[..., None]
    picked = ops.take_along_axis(log_probs, indices, axis=-1)[..., 0]
    return ops.where(padding_mask(labels), ops.cast(picked, "float32"), 0.0)
