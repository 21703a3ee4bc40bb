"""Writes any model of this package for ONNX Runtime, and checks it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.engine_folders import (
    ENGINES,
    check_exportable,
    refuse_existing,
    write_engine_folder,
)
from keras_deepnmt.exchange.onnx_graphs import write_graphs

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

_ENGINE = ENGINES["onnx"]
# Those of `translate.py`.
_SEARCH = (
    *("num_beams", "length_penalty", "length_offset", "patience"),
    *("min_length", "max_length_ratio", "max_extra_tokens"),
    *("no_repeat_ngram_size", "allow_unknown"),
)
# Of a file of ONNX: the limit of its format is 2 GiB.
_MOST_BYTES = 1.9e9


def export_onnx(
    translator: "Translator",
    directory: str | Path,
    sources: list[str] | None = None,
) -> dict[str, Any]:
    """Writes the model of a translator for ONNX Runtime.

    The folder has `encoder.onnx`, `decoder_step.onnx`, the two SentencePiece
    models, `translate.py`, a beam search in NumPy that translates lines with
    ONNX Runtime and SentencePiece alone, and `export.json`: the names and
    shapes of all tensors of the graphs, the search options, and golden
    sentences with their translations. It appears when a fresh process has
    translated them with it as this package does: the same texts, and scores
    within 1e-4, relative to those above 1.

    All models of this package can be written, with any layers in their slots.

    Args:
        translator: The translator; its search options are those of
            `translate.py`.
        directory: The folder to write; it must not exist yet.
        sources: Golden sentences. Defaults to random pieces and special
            characters.

    Returns:
        What the check found: `sentences`, `equal` translations and the
        `largest_difference` of a score, compared with this package.

    Raises:
        UserError: if the model computes in another type than float32, the
            tokenizers or search options have what `translate.py` lacks, the
            folder exists, or what was written does not compute the same.

    Example:
    >>> found = export_onnx(translator, "onnx/demo")
    >>> found["equal"] == found["sentences"]
    True
    """
    directory = Path(directory)
    refuse_existing(directory)
    check_exportable(translator)
    _check(translator.model)

    def write(folder):
        source, target = (
            getattr(translator, f"{side}_tokenizer")
            for side in ("source", "target")
        )
        return {
            "graphs": write_graphs(translator.model, folder),
            "search": {n: getattr(translator.options, n) for n in _SEARCH},
            "max_length": translator.model.max_length,
            "max_source_length": translator.max_source_length,
            # Ids from here on are unknown to the model.
            "source_vocabulary_size": source.vocabulary_size,
            # Pieces end words, so that a text ends with a space.
            "word_ends": target.marks_word_ends,
        }

    return write_engine_folder(_ENGINE, translator, directory, write, sources)


def _check(model):
    if keras.config.backend() != "tensorflow":
        raise UserError(
            "An export for ONNX Runtime needs Keras on TensorFlow. Received: "
            f"KERAS_BACKEND={keras.config.backend()}. Run the same command "
            "with KERAS_BACKEND=tensorflow; the same weights can be used."
        )
    for layer in model._flatten_layers():
        policy = layer.dtype_policy.name
        if policy != "float32":
            raise UserError(
                "An export for ONNX Runtime needs a model that computes in "
                f"float32. Received: {policy} in `{layer.name}`. Make the "
                'model with dtype="float32"; the same weights can be used.'
            )
    size = 4 * model.count_params()
    if size > _MOST_BYTES:
        raise UserError(
            "A file of ONNX has at most 2 GiB, and the weights of this model "
            f"have {size / 2**30:.1f} GiB. Export for TensorFlow Serving."
        )
