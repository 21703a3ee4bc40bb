"""Writes a plain Transformer for CTranslate2, and checks what was written."""

import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.engine_folders import (
    ENGINES,
    check_exportable,
    model_pieces,
    refuse_existing,
    write_engine_folder,
)
from keras_deepnmt.exchange.plain_transformer import (
    check_plain,
    transformer_arrays,
)

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

Dtype = Literal["float32", "float16", "int16", "int8"]
_ENGINE = ENGINES["ctranslate2"]
_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "silu": "SWISH",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
}
# The options of a search in CTranslate2's words, and its other values of them.
_ARGUMENTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "num_beams": ("beam_size", int),
    # It stops when it has a translation for each beam, or later.
    "patience": ("patience", lambda value: max(value, 1.0)),
    "length_penalty": ("length_penalty", float),
    "min_length": ("min_decoding_length", int),
    "no_repeat_ngram_size": ("no_repeat_ngram_size", int),
    "allow_unknown": ("disable_unk", operator.not_),
    "max_length_ratio": ("length_ratio", float),
    "max_extra_tokens": ("extra_tokens", int),
}


def export_ctranslate2(
    translator: "Translator",
    directory: str | Path,
    dtype: Dtype = "float32",
    sources: list[str] | None = None,
) -> dict[str, Any]:
    """Writes the model of a translator as a folder for CTranslate2.

    The folder has CTranslate2's own files, the two SentencePiece models
    (`source.spm`, `target.spm`), `translate.py`, a program that translates
    lines with CTranslate2 and SentencePiece alone, and `export.json`: the
    search options, and golden sentences with their outputs. It appears when a
    fresh process has computed the same with it: in float32 the same greedy
    translations, and log-probabilities within 1e-4.

    CTranslate2 divides log-probabilities by a power of the length, as this
    package does with `length_offset=0`. With another offset the best of
    several hypotheses may be another one.

    Args:
        translator: The translator; its search options are those of
            `translate.py`.
        directory: The folder to write; it must not exist yet.
        dtype: Type of the stored weights: `"float32"`, `"float16"`, `"int16"`
            or `"int8"`.
        sources: Golden sentences. Defaults to random pieces and special
            characters.

    Returns:
        What the check found: `sentences`, `equal` greedy translations and the
        `largest_difference` of a log-probability, compared with this package.

    Raises:
        UserError: if the model, its tokenizers or its search options have what
            CTranslate2 lacks, the folder exists, or what was written does not
            compute the same.

    Example:
    >>> found = export_ctranslate2(translator, "ctranslate2/demo")
    >>> found["equal"] == found["sentences"]
    True
    """
    if dtype not in get_args(Dtype):
        raise UserError(
            f"`dtype` must be one of {', '.join(get_args(Dtype))}. Received: "
            f"{dtype}"
        )
    directory = Path(directory)
    refuse_existing(directory)
    check_plain(translator.model, _ENGINE.name)
    check_exportable(translator)
    activation = translator.model.get_config()["activation"]
    # One of one's own is a dict.
    if activation not in list(_ACTIVATIONS):
        raise UserError(
            "CTranslate2 cannot compute this model: `activation` must be one "
            f"of {', '.join(_ACTIVATIONS)}. Received: {activation}. Train such "
            "a model, or export for TensorFlow Serving or ONNX Runtime."
        )

    def write(folder):
        _write_model(translator, folder, dtype)
        return {
            "dtype": dtype,
            "search": search_arguments(translator.options.as_dict()),
            "max_source_length": translator.max_source_length,
            "max_target_length": translator.model.max_length,
            "special_pieces": _special_pieces(translator.target_tokenizer),
            # Pieces end words, so that a text ends with a space.
            "word_ends": translator.target_tokenizer.marks_word_ends,
        }

    return write_engine_folder(
        _ENGINE, translator, directory, write, sources, dtype == "float32"
    )


def search_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments of `translate.py` for options of a search.

    Options that CTranslate2 lacks are left out. `length_ratio` and
    `extra_tokens` are of `translate.py`, the other arguments of CTranslate2's
    `translate_batch`.

    Example:
    >>> search_arguments({"num_beams": 2, "num_groups": 2})
    {'beam_size': 2}
    """
    return {
        argument: convert(options[name])
        for name, (argument, convert) in _ARGUMENTS.items()
        if name in options
    }


def search_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that `search_arguments` turned into arguments.

    Example:
    >>> search_options({"disable_unk": True})
    {'allow_unknown': False}
    """
    return {
        name: not arguments[argument]
        if name == "allow_unknown"
        else arguments[argument]
        for name, (argument, _) in _ARGUMENTS.items()
        if argument in arguments
    }


def _special_pieces(tokenizer):
    """The padding and the begin, which a translation never has."""
    pieces = model_pieces(tokenizer)
    return [pieces[0], pieces[2]]


def _write_model(translator, folder, dtype):
    from ctranslate2.specs import TransformerSpec, common_spec

    model = translator.model
    config, arrays = model.get_config(), transformer_arrays(model)
    activation = _ACTIVATIONS[config["activation"]]
    spec = TransformerSpec.from_config(
        (config["num_encoder_layers"], config["num_decoder_layers"]),
        config["num_heads"],
        pre_norm=config["normalize_first"],
        activation=getattr(common_spec.Activation, activation),
    )
    for side in ("encoder", "decoder"):
        stack = getattr(spec, side)
        scale = config["embedding_scale"]
        stack.scale_embeddings = True if scale is None else float(scale)
        stack.position_encodings.encodings = arrays[f"{side}.positions"]
        if config["normalize_first"]:
            _set_norm(stack.layer_norm, arrays, side)
        for number, layer in enumerate(stack.layer):
            _set_block(layer, arrays, f"{side}.{number}")
    spec.encoder.embeddings[0].weight = arrays["source_embedding"]
    spec.decoder.embeddings.weight = arrays["target_embedding"]
    spec.decoder.projection.weight = np.ascontiguousarray(arrays["output"])
    if "output_bias" in arrays:
        spec.decoder.projection.bias = arrays["output_bias"]
    pieces = {}
    for side in ("source", "target"):
        pieces[side] = model_pieces(getattr(translator, f"{side}_tokenizer"))
        getattr(spec, f"register_{side}_vocabulary")(pieces[side])
    _, unknown, begin, end = pieces["target"][:4]
    spec.config.unk_token, spec.config.bos_token = unknown, begin
    spec.config.eos_token, spec.config.decoder_start_token = end, begin
    spec.config.add_source_eos = config["encode_end"]
    spec.config.layer_norm_epsilon = config["layer_norm_epsilon"]
    spec.validate()
    spec.optimize(quantization=None if dtype == "float32" else dtype)
    spec.save(str(folder))


def _set_norm(spec, arrays, name):
    spec.gamma = arrays[f"{name}.norm.gamma"]
    spec.beta = arrays[f"{name}.norm.beta"]


def _set_linear(spec, arrays, name, parts):
    """Sets a product with the matrices of several parts side by side."""
    kernels = [arrays[f"{name}.{part}.kernel"].T for part in parts]
    spec.weight = np.ascontiguousarray(np.concatenate(kernels))
    spec.bias = np.concatenate(
        [arrays[f"{name}.{part}.bias"] for part in parts]
    )


def _set_block(layer, arrays, name):
    together = [["query", "key", "value"], ["output"]]
    _set_norm(layer.self_attention.layer_norm, arrays, f"{name}.attention")
    for spec, parts in zip(layer.self_attention.linear, together, strict=True):
        _set_linear(spec, arrays, f"{name}.attention", parts)
    if hasattr(layer, "attention"):
        cross = f"{name}.cross_attention"
        apart = [["query"], ["key", "value"], ["output"]]
        _set_norm(layer.attention.layer_norm, arrays, cross)
        for spec, parts in zip(layer.attention.linear, apart, strict=True):
            _set_linear(spec, arrays, cross, parts)
    network = f"{name}.feed_forward"
    _set_norm(layer.ffn.layer_norm, arrays, network)
    _set_linear(layer.ffn.linear_0, arrays, network, ["intermediate"])
    _set_linear(layer.ffn.linear_1, arrays, network, ["output"])
