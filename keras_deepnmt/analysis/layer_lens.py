"""What each layer of a decoder would predict."""

import keras
import numpy as np
from keras import ops

from keras_deepnmt.analysis.analyzed_run import BATCH, AnalyzedRun
from keras_deepnmt.analysis.figure import Bars, Figure
from keras_deepnmt.analysis.recorded_model import record


def layer_lens(
    model: keras.Model, inputs: dict[str, np.ndarray], labels: np.ndarray
) -> dict[str, dict[str, float]]:
    """Decodes the output of each decoder block through the output matrix.

    A block's output h at position t is projected to the vocabulary as if it
    were that of the last block (nostalgebraist, 2020, "logit lens"):

        P_t = softmax(project(f(h_t)))

    where f is the part of the model behind the stack: the norm of pre-norm
    Transformers, the layer `decoder_output` of `models.ConvSeq2Seq`. Layer
    aggregation and surface fusion of the model are left out, so that the last
    block's numbers differ from the model's if it has them.

    Args:
        model: `models.Transformer`, or `models.ConvSeq2Seq` whose decoder has
            residual connections and blocks of one width.
        inputs: Dict of int arrays `{"source_ids", "target_ids"}`.
        labels: Int array `(B, T)`, 0 = padding.

    Returns:
        For each decoder block, lowest first, `"log_prob"`, the mean
        log-probability of the labels in nats, and `"accuracy"`, how often the
        most probable token is the label.

    Raises:
        ValueError: if the model has no decoder blocks, or blocks of another
            width than the layer behind the stack reads.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 2)
    >>> inputs = {"source_ids": np.array([[4, 3]])}
    >>> inputs["target_ids"] = np.array([[2, 5]])
    >>> list(layer_lens(model, inputs, np.array([[5, 3]])))
    ['decoder_block_1', 'decoder_block_2']
    """
    recorded = record(model, "decoder_block_*/output")
    labels = np.asarray(labels)
    sums: dict[str, np.ndarray] = {}
    # The logits of all sentences would need gigabytes.
    for start in range(0, len(labels), BATCH):
        batch = slice(start, start + BATCH)
        outputs = recorded({side: ids[batch] for side, ids in inputs.items()})
        behind_stack = _behind_stack(model, outputs)
        for name, states in outputs.items():
            logits = model.project(behind_stack(states))
            found = _sums(logits, labels[batch])
            sums[name] = sums.get(name, 0.0) + found
    number = (labels != 0).sum()
    return {
        name.split("/")[0]: {
            "log_prob": float(log_prob / number),
            "accuracy": float(right / number),
        }
        for name, (log_prob, right) in sums.items()
    }


def _sums(logits, labels):
    """The log-probabilities and the right guesses of real labels, summed up."""
    log_probs = ops.log_softmax(logits, axis=-1)
    of_labels = ops.take_along_axis(log_probs, labels[..., None], axis=-1)
    right = ops.convert_to_numpy(ops.argmax(log_probs, axis=-1)) == labels
    real = labels != 0
    of_labels = ops.convert_to_numpy(of_labels)[..., 0][real]
    return np.array([of_labels.sum(dtype="float64"), right[real].sum()])


def _behind_stack(model, outputs):
    """Applies the part of the model behind its last block to outputs."""
    norm = getattr(model, "decoder_norm", None)
    if norm is not None:
        return norm
    dense = getattr(model, "decoder_output", None)
    if dense is None:
        return lambda states: states
    width = dense.kernel.shape[0]
    for name, states in outputs.items():
        if states.shape[-1] != width:
            block = name.split("/")[0]
            raise ValueError(
                "`model` must have decoder blocks as wide as the states that "
                "its layer `decoder_output` reads: residual connections and "
                f"one `hidden_dim`. Received: {block} of width "
                f"{states.shape[-1]}, and `decoder_output` reads {width}."
            )
    return dense


def lens_figures(run: AnalyzedRun) -> list[Figure]:
    """What each decoder block would predict, decoded by the output matrix."""
    # Without this norm, the blocks may not have the width that the output
    # reads.
    if not hasattr(run.model, "decoder_norm"):
        return []
    lens = layer_lens(run.model, run.inputs, run.labels)
    blocks = [str(block) for block in range(1, len(lens) + 1)]
    curves = {
        measure: [found[measure] for found in lens.values()]
        for measure in ("log_prob", "accuracy")
    }
    note = (
        "The output of each decoder block, projected as if it were that of "
        "the last one, without layer aggregation and fusion behind the stack."
    )
    return [
        Bars(
            name="layer_lens",
            title="Probability of the labels after each decoder block",
            caption=note,
            names=blocks,
            series={run.name: curves["log_prob"]},
            x_label="decoder block",
            y_label="mean log-probability (nats)",
        ),
        Bars(
            name="layer_lens_accuracy",
            title="Correct labels after each decoder block",
            caption=note,
            names=blocks,
            series={run.name: curves["accuracy"]},
            x_label="decoder block",
            y_label="share of correct labels",
        ),
    ]
