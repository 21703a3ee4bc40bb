"""Writes a plain Transformer for CTranslate2, and checks what was written."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.factored_case import FactoredCase
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.plain_transformer import (
    check_plain,
    transformer_arrays,
)
from keras_deepnmt.file_tables import check_files, file_table
from keras_deepnmt.files import StagedFolder, write_json
from keras_deepnmt.json_files import read_json
from keras_deepnmt.processes import run_python

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

Dtype = Literal["float32", "float16", "int16", "int8"]
# Describes a folder that this module wrote.
CTRANSLATE2_FILE = "export.json"
_PROGRAM = "translate.py"
_CHECK = Path(__file__).with_name("ctranslate2_check.py")
_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "silu": "SWISH",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
}
# Search options that must have these values.
_SEARCH = {
    "num_groups": 1,
    "sampling": False,
    "coverage_penalty": 0.0,
}
# Largest difference of a log-probability, relative to those above 1.
_TOLERANCE = 1e-4


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
    if directory.exists():
        raise UserError(f"{directory}: exists already. Give a new folder.")
    _check(translator)
    expected = _expected(translator, sources)
    with StagedFolder(directory) as folder:
        _write_model(translator, folder, dtype)
        for side in ("source", "target"):
            tokenizer = getattr(translator, f"{side}_tokenizer")
            (folder / f"{side}.spm").write_bytes(tokenizer.proto)
        shutil.copy(
            Path(__file__).with_name("ctranslate2_program.py"),
            folder / _PROGRAM,
        )
        content = {
            "dtype": dtype,
            "search": _search_options(translator),
            "max_source_length": translator.max_source_length,
            "special_pieces": _special_pieces(translator.target_tokenizer),
        }
        write_json(folder / CTRANSLATE2_FILE, content)
        received = _run(folder, expected, directory)
        found = _compare(expected, received)
        if dtype == "float32" and not _is_same(found):
            raise UserError(
                f"{directory}: CTranslate2 does not compute what this package "
                f"does: {found['equal']} of {found['sentences']} golden "
                "sentences have the same greedy translation, log-probabilities "
                f"differ by up to {found['largest_difference']:.1e}. Nothing "
                "was written."
            )
        files = [p.name for p in folder.iterdir() if p.name != CTRANSLATE2_FILE]
        content |= {"golden": received, "files": file_table(folder, files)}
        write_json(folder / CTRANSLATE2_FILE, content)
    return found


def is_ctranslate2_folder(directory: str | Path) -> bool:
    """Returns whether `export_ctranslate2` wrote a folder.

    Args:
        directory: Any path.

    Example:
    >>> is_ctranslate2_folder("served/demo")
    False
    """
    folder = Path(directory)
    return all(
        (folder / name).is_file() for name in (CTRANSLATE2_FILE, "model.bin")
    )


def verify_ctranslate2(directory: str | Path) -> dict[str, Any]:
    """Checks that a folder computes what it did when it was written.

    A fresh process with CTranslate2 and SentencePiece alone computes the golden
    sentences.

    Args:
        directory: A folder that `export_ctranslate2` wrote.

    Returns:
        As `export_ctranslate2`, compared with the recorded outputs.

    Raises:
        UserError: if a file is damaged or missing, a translation differs, or a
            log-probability by more than 1e-4 (relative if it is above 1).

    Example:
    >>> verify_ctranslate2("ctranslate2/demo")["sentences"]
    17
    """
    folder = Path(directory)
    content = read_json(folder / CTRANSLATE2_FILE, dict)
    remedy = "Copy the folder again, or export the model again."
    golden, files = content.get("golden"), content.get("files")
    if not isinstance(golden, dict) or not isinstance(files, dict):
        raise UserError(f"{folder / CTRANSLATE2_FILE}: damaged. {remedy}")
    check_files(folder, files, CTRANSLATE2_FILE, remedy)
    found = _compare(golden, _run(folder, golden, folder))
    if not _is_same(found):
        raise UserError(
            f"{folder}: {found['sentences'] - found['equal']} of "
            f"{found['sentences']} golden sentences are translated otherwise "
            "than when it was written, and log-probabilities differ by up to "
            f"{found['largest_difference']:.1e}."
        )
    return found


def _check(translator):
    check_plain(translator.model, "CTranslate2")
    activation = translator.model.get_config()["activation"]
    if activation not in _ACTIVATIONS:
        raise UserError(
            "CTranslate2 has these activations: "
            f"{', '.join(_ACTIVATIONS)}. Received: activation={activation}"
        )
    for name, needed in _SEARCH.items():
        value = getattr(translator.options, name, needed)
        if value != needed:
            raise UserError(
                f"`translate.py` of the folder has no `{name}`: it must be "
                f"{needed}. Received: {name}={value}"
            )
    if translator.tag is not None:
        raise UserError(
            f"The tag {translator.tag} cannot be given: write it before the "
            "lines that `translate.py` reads."
        )
    for side in ("source", "target"):
        tokenizer = getattr(translator, f"{side}_tokenizer")
        if any(isinstance(step, FactoredCase) for step in tokenizer.steps):
            raise UserError(
                f"The {side} tokenizer has `data.case: factored`, which "
                "SentencePiece alone does not do. Train with `case: kept`, or "
                "export for TensorFlow Serving."
            )


def _search_options(translator):
    """The arguments of CTranslate2's `translate_batch`."""
    options = translator.options
    return {
        "beam_size": options.num_beams,
        "patience": max(options.patience, 1.0),
        "length_penalty": options.length_penalty,
        "min_decoding_length": options.min_length,
        "no_repeat_ngram_size": options.no_repeat_ngram_size,
        "disable_unk": not options.allow_unknown,
        "length_ratio": options.max_length_ratio,
        "extra_tokens": options.max_extra_tokens,
    }


def _pieces(tokenizer):
    model = model_pb2.ModelProto.FromString(tokenizer.proto)
    return [p.piece for p in model.pieces[: tokenizer.vocabulary_size]]


def _special_pieces(tokenizer):
    """The padding and the begin, which a translation never has."""
    pieces = _pieces(tokenizer)
    return [pieces[0], pieces[2]]


def _expected(translator, sources):
    """What this package computes of the golden sentences."""
    from keras_deepnmt.serving.golden import default_sources

    sources = sources or default_sources(translator.source_tokenizer)
    greedy = translator.replaced(num_beams=1, compiled=False)
    texts = greedy.translate(sources)
    scores = [float(found.total) for found in greedy.score(sources, texts)]
    return {
        "sources": sources,
        "targets": texts,
        "texts": texts,
        "log_probs": scores,
    }


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
        pieces[side] = _pieces(getattr(translator, f"{side}_tokenizer"))
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


def _run(folder: Path, golden: Mapping[str, Any], shown: Path):
    """Computes golden sentences in a fresh process, without this package."""
    process = run_python(
        [_CHECK, folder],
        json.dumps({name: golden[name] for name in ("sources", "targets")}),
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    if process.returncode:
        lines = re.findall(
            r"^[\w.]*(?:Error|Exception)\b.*", process.stderr, re.MULTILINE
        )
        raise UserError(
            f"{shown}: CTranslate2 could not run it: "
            f"{(lines or [process.stderr.strip() or 'no message'])[-1]}"
        )
    return json.loads(process.stdout.splitlines()[-1])


def _compare(expected, received):
    differences = [
        abs(one - other) / max(1.0, abs(one))
        for one, other in zip(
            expected["log_probs"], received["log_probs"], strict=True
        )
    ]
    return {
        "sentences": len(expected["texts"]),
        "equal": sum(
            one == other
            for one, other in zip(
                expected["texts"], received["texts"], strict=True
            )
        ),
        "largest_difference": max(differences),
    }


def _is_same(found):
    return (
        found["equal"] == found["sentences"]
        and found["largest_difference"] <= _TOLERANCE
    )
