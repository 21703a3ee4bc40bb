"""What each layer of a decoder would predict."""

import keras
import numpy as np
from keras import ops

from keras_deepnmt.analysis.recorded_model import record


def layer_lens(
    model: keras.Model, inputs: dict[str, np.ndarray], labels: np.ndarray
) -> dict[str, dict[str, float]]:
    """Decodes the output of each decoder block through the output matrix.

    A block's output h at position t is projected to the vocabulary as if it
    were that of the last block (nostalgebraist, 2020, "logit lens"):

        P_t = softmax(project(norm(h_t)))

    with the norm behind the stack in pre-norm models. Layer aggregation and
    surface fusion of the model are left out, so that the last block's numbers
    differ from the model's where it has them.

    Args:
        model: `models.Transformer`, or `models.ConvSeq2Seq` whose blocks have
            the width that its output reads.
        inputs: Dict of int arrays `{"source_ids", "target_ids"}`.
        labels: Int array `(B, T)`, 0 = padding.

    Returns:
        For each decoder block, lowest first, `"log_prob"`, the mean
        log-probability of the labels in nats, and `"accuracy"`, how often the
        most probable token is the label.

    Raises:
        ValueError: if the model has no decoder blocks.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 2)
    >>> inputs = {"source_ids": np.array([[4, 3]])}
    >>> inputs["target_ids"] = np.array([[2, 5]])
    >>> list(layer_lens(model, inputs, np.array([[5, 3]])))
    ['decoder_block_1', 'decoder_block_2']
    """
    outputs = record(model, "decoder_block_*/output")(inputs)
    real = np.asarray(labels) != 0
    lens = {}
    for name, states in outputs.items():
        norm = getattr(model, "decoder_norm", None)
        if norm is not None:
            states = norm(states)
        logits = ops.cast(model.project(states), "float32")
        log_probs = ops.convert_to_numpy(ops.log_softmax(logits, axis=-1))
        of_labels = np.take_along_axis(
            log_probs, np.asarray(labels)[..., None], axis=-1
        )[..., 0]
        right = log_probs.argmax(axis=-1) == labels
        lens[name.split("/")[0]] = {
            "log_prob": float(of_labels[real].mean()),
            "accuracy": float(right[real].mean()),
        }
    return lens
