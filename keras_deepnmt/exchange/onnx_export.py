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
from keras_deepnmt.models.quantized_saving import quantization_modes
from keras_deepnmt.models.seq2seq import Seq2Seq

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
    Of a model that computes in half precision, the weights are written in
    float32, and so is it compared.

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
        UserError: if the model is an ensemble, quantized or too large, the
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
    translator = _in_float32(translator)

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
    if not isinstance(model, Seq2Seq):
        raise UserError(
            "An export for ONNX Runtime takes one model. Received: "
            f"{type(model).__name__}. Export the models one by one."
        )
    if modes := quantization_modes(model):
        raise UserError(
            "An export for ONNX Runtime needs weights that are not quantized. "
            f"Received: {' and '.join(modes)} weights. Export the model as it "
            "was before `quantize`."
        )
    size = 4 * model.count_params()
    if size > _MOST_BYTES:
        raise UserError(
            "A file of ONNX has at most 2 GiB, and the weights of this model "
            f"have {size / 2**30:.1f} GiB. Export for TensorFlow Serving."
        )


def _in_float32(translator):
    """Gives a translator a copy of its model that computes in float32."""
    model = translator.model
    if model.dtype_policy.name == "float32":
        return translator
    copy = model.from_config({**model.get_config(), "dtype": "float32"})
    copy.set_weights(model.get_weights())
    return translator.replaced(model=copy)
