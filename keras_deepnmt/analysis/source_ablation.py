"""How much a translation depends on each word of its source."""

import keras
import numpy as np
from keras import ops

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.attention import short_sentences
from keras_deepnmt.analysis.figure import Figure, HeatMap
from keras_deepnmt.masks import END_ID, PADDING_ID, UNKNOWN_ID


def source_ablation(
    model: keras.Model, inputs: dict[str, np.ndarray], labels: np.ndarray
) -> np.ndarray:
    """Measures the loss of the labels if a word of the source is hidden.

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


def ablation_figures(run: AnalyzedRun) -> list[Figure]:
    """The loss of each label if a word of the source is hidden."""
    rows = short_sentences(run)
    inputs = {side: ids[rows] for side, ids in run.inputs.items()}
    losses = source_ablation(run.model, inputs, run.labels[rows])
    figures: list[Figure] = []
    for index, row in enumerate(rows):
        source, target = run.source_tokens(row), run.target_tokens(row)
        figures.append(
            HeatMap(
                name=f"source_ablation_{index + 1}",
                title=f"Loss without a source token, sentence "
                f"{run.rows[row] + 1}",
                caption="Drop of each label's log-probability if a source "
                "token is replaced by the unknown token.",
                # The end of the source is never hidden.
                values=losses[index, : len(target), : len(source) - 1],
                row_names=target,
                column_names=source[:-1],
                row_label="label",
                column_label="hidden token",
                unit="loss of log-probability (nats)",
            )
        )
    return figures
