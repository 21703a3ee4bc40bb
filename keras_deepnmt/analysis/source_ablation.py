"""How much a translation depends on each word of its source."""

import keras
import numpy as np
from keras import ops

from keras_deepnmt.masks import END_ID, PADDING_ID, UNKNOWN_ID


def source_ablation(
    model: keras.Model, inputs: dict[str, np.ndarray], labels: np.ndarray
) -> np.ndarray:
    """Measures what the labels lose if a word of the source is hidden.

        loss[b, t, s] = log P(y_t | x) - log P(y_t | x without x_s)

    where `x without x_s` has the unknown token at place s. A large number means
    that the label needs this word.

    Args:
        model: Model of this package, compiled or not; called without dropout,
            once for each source position.
        inputs: Dict of int arrays `{"source_ids", "target_ids"}`, `(B, S)` and
            `(B, T)`.
        labels: Int array `(B, T)`, 0 = padding.

    Returns:
        Float array `(B, T, S)` in nats; 0 at padding and at the end token of
        the source.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> inputs = {"source_ids": np.array([[4, 5, 3]])}
    >>> inputs["target_ids"] = np.array([[2, 6]])
    >>> losses = source_ablation(model, inputs, np.array([[6, 3]]))
    >>> losses.shape, losses[..., 2].tolist()
    ((1, 2, 3), [[0.0, 0.0]])
    """
    source_ids = np.asarray(inputs["source_ids"])
    labels = np.asarray(labels)
    whole = _label_log_probs(model, inputs, labels)
    losses = np.zeros((*labels.shape, source_ids.shape[1]), "float32")
    words = (source_ids != PADDING_ID) & (source_ids != END_ID)
    for place in np.flatnonzero(words.any(axis=0)):
        hidden = source_ids.copy()
        hidden[:, place] = np.where(
            words[:, place], UNKNOWN_ID, hidden[:, place]
        )
        changed = {**inputs, "source_ids": hidden}
        losses[:, :, place] = whole - _label_log_probs(model, changed, labels)
    real = (labels != PADDING_ID)[..., None] & words[:, None, :]
    return np.where(real, losses, 0.0)


def _label_log_probs(model, inputs, labels):
    """Log-probabilities of the labels, `(B, T)`."""
    log_probs = model.log_probs(model(inputs, training=False))
    log_probs = ops.convert_to_numpy(log_probs)
    return np.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
