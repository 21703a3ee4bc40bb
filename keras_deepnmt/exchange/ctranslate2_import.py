"""Models of CTranslate2, such as its converters write.

A folder has `model.bin`, `config.json` and the vocabularies. The SentencePiece
models that cut texts stand beside them as `source.spm` and `target.spm`, as
`export_ctranslate2` writes them, or are given.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.config_values import length_limits, section
from keras_deepnmt.exchange.ctranslate2_binary import read_binary
from keras_deepnmt.exchange.ctranslate2_export import search_options
from keras_deepnmt.exchange.embedding_weights import embedding_weights
from keras_deepnmt.exchange.engine_folders import EXPORT_FILE
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.position_tables import waves, with_positions
from keras_deepnmt.exchange.sigmoid_gelu import as_silu
from keras_deepnmt.exchange.vocabulary import Vocabulary, read_sentencepiece
from keras_deepnmt.json_files import read_json

FORMAT = "ctranslate2"
_MODEL, _CONFIG = "model.bin", "config.json"
# By the numbers of `ctranslate2.specs.Activation`. The fifth is x sigmoid(1.702
# x).
_ACTIVATIONS = {0: "relu", 2: "silu", 3: "gelu", 4: "silu", 5: "tanh"}
_ACTIVATIONS[6] = "sigmoid"
_SIGMOID_GELU = 4
# What CTranslate2 takes where `config.json` names none.
_EPSILON = 1e-5
# Of the table for a model without one.
_NUM_POSITIONS = 1024
# Names of padding in the vocabularies of toolkits; CTranslate2 has none.
_PADDING = ("<pad>", "<blank>", "[PAD]")
# Variables that change nothing in a plain Transformer.
_IGNORED = {
    "encoder": ("embeddings_merge",),
    "decoder": (
        "alignment_heads",
        "alignment_layer",
        "alibi_use_positive_positions",
        "scale_alibi",
    ),
}
# Switches of layers that this package does not have.
_OFF = {"encoder": ("multi_query_attention",), "decoder": ("alibi",)}
_KEYS = {
    "add_source_bos": bool,
    "add_source_eos": bool,
    "bos_token": str,
    "decoder_start_token": str,
    "eos_token": str,
    "unk_token": str,
}
_DEFAULTS = {
    "add_source_bos": False,
    "add_source_eos": False,
    "bos_token": "<s>",
    "decoder_start_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
}
# Its own options, where no `export.json` says others.
_SEARCH = {"beam_size": 2, "length_penalty": 1.0}
# And its `max_decoding_length`, to which the end is added.
_MOST_TOKENS = 256


def is_ctranslate2(path: Path) -> bool:
    """Whether a path is a folder of this format."""
    return all((path / name).is_file() for name in (_MODEL, _CONFIG))


def load_ctranslate2(
    path: str | Path,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> ImportedModel:
    """Reads a Transformer of CTranslate2.

    The package ctranslate2 is not needed. Weights of 8 or 16 bit integers
    become float32, with a warning: they keep what rounding changed, and the
    log-probabilities differ from those that CTranslate2 computes in integers.

    Args:
        path: the folder.
        source_tokenizer: SentencePiece model in place of `source.spm`.
        target_tokenizer: SentencePiece model in place of `target.spm`.

    Returns:
        The model, its tokenizers and the options of its search.

    Raises:
        UserError: if a file is missing or damaged, a vocabulary does not fit
            the weights, or the model has what this package does not have.

    Example:
    >>> from keras_deepnmt.exchange import load_ctranslate2
    >>> load_ctranslate2("ctranslate2/demo").arguments["num_encoder_layers"]
    2
    """
    folder = Path(path)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder.")
    config = _read_config(folder / _CONFIG)
    variables, quantized = read_binary(folder / _MODEL)
    tensors = NamedTensors(variables, folder / _MODEL)
    zero_begin = bool(_number(tensors, "decoder/start_from_zero_embedding", 0))
    vocabularies = _vocabularies(folder, config, zero_begin)
    weights, arguments = _model(tensors, config, vocabularies)
    _refuse_others(tensors)
    protos = [
        vocabulary.tokenizer(
            read_sentencepiece(_tokenizer_file(folder, side, given))
        )
        for side, given, vocabulary in zip(
            ("source", "target"),
            (source_tokenizer, target_tokenizer),
            vocabularies,
            strict=True,
        )
    ]
    decoding = _decoding(folder)
    if quantized:
        warnings.warn(
            f"{folder}: its weights of type {', '.join(sorted(quantized))} "
            "become float32, with what rounding changed in them.",
            stacklevel=2,
        )
    return ImportedModel(
        str(folder),
        FORMAT,
        arguments,
        weights,
        *protos,
        decoding,
        {"name": folder.name, "source": None, "target": None},
    )


def _tokenizer_file(folder, side, given):
    if given is not None:
        return Path(given)
    file = folder / f"{side}.spm"
    if not file.is_file():
        raise UserError(
            f"{file}: no such file. Give the {side} side's SentencePiece model "
            f"by --{side}-tokenizer."
        )
    return file


def _read_config(file):
    try:
        found = read_json(file, dict[str, Any])
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error
    config = _DEFAULTS | found
    epsilon = config.pop("layer_norm_epsilon", None)
    config["epsilon"] = _EPSILON if epsilon is None else epsilon
    for key, kind in {**_KEYS, "epsilon": float}.items():
        if not isinstance(config[key], kind):
            name = "layer_norm_epsilon" if key == "epsilon" else key
            raise UserError(
                f"{file}: `{name}` must be of type {kind.__name__}, since "
                f"other models cannot be imported. Received: {config[key]}"
            )
    others = found.keys() - _KEYS.keys() - {"layer_norm_epsilon"}
    for key in sorted(others):
        if config.get(key):
            raise UserError(
                f"{file}: a model with `{key}` cannot be imported. Received: "
                f"{config[key]}"
            )
    return config


def _vocabularies(folder, config, zero_begin):
    names = {
        side: _read_vocabulary(folder, side) for side in ("source", "target")
    }
    vocabularies = []
    for side, (file, pieces) in names.items():
        ids = {piece: number for number, piece in enumerate(pieces)}
        special = {}
        for name, key in (("unknown", "unk_token"), ("end", "eos_token")):
            special[name] = ids.get(config[key])
            if special[name] is None:
                raise UserError(
                    f"{file}: must have the piece of `{key}` in {_CONFIG}, "
                    f"{config[key]}."
                )
        begins_texts = side == "source" and config["add_source_bos"]
        key = "bos_token" if begins_texts else "decoder_start_token"
        begin = ids.get(config[key])
        if begins_texts and begin is None:
            raise UserError(
                f"{file}: must have the piece of `bos_token` in {_CONFIG}, "
                f"{config[key]}, since `add_source_bos` is true."
            )
        if zero_begin and not begins_texts:
            begin = None  # it has a vector of zeros
        elif begin is None and side == "target":
            begin = special["unknown"]
        if begin == special["unknown"]:
            raise UserError(
                f"{folder / _CONFIG}: `{key}` must be a piece of {file.name} "
                f"other than {config['unk_token']}. Received: {config[key]}"
            )
        padding = next((ids[n] for n in _PADDING if n in ids), None)
        vocabularies.append(
            Vocabulary(
                *(file, pieces, padding),
                begin=begin,
                begins_texts=begins_texts,
                **special,
            )
        )
    return tuple(vocabularies)


def _read_vocabulary(folder, side):
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        file = folder / f"{name}.json"
        if file.is_file():
            pieces = read_json(file, list[str])
            break
    else:
        raise UserError(
            f"{folder}: must have {side}_vocabulary.json or "
            "shared_vocabulary.json. Convert the model by CTranslate2 3 or 4."
        )
    if len(set(pieces)) < len(pieces):
        twice = next(p for n, p in enumerate(pieces) if p in pieces[:n])
        raise UserError(f"{file}: has the piece {twice} twice.")
    return file, pieces


def _number(tensors, name, default=None):
    """Returns a variable that is one number."""
    if default is not None and not tensors.has(name):
        return default
    value = tensors.take(name)
    if value.shape != ():
        raise UserError(
            f"{tensors.origin}: {name} must be one number. Received: an array "
            f"of the shape {value.shape}"
        )
    return value.item()


def _of_both(tensors, name, read):
    """Reads what must be the same in the encoder and in the decoder."""
    found = [read(f"{side}/{name}") for side in ("encoder", "decoder")]
    if found[0] != found[1]:
        raise UserError(
            f"{tensors.origin}: encoder/{name} and decoder/{name} must be "
            f"equal. Received: {found[0]} and {found[1]}"
        )
    return found[0]


def _model(tensors, config, vocabularies):
    """Returns the weights by path, and the arguments of `Transformer`."""
    for side, names in _IGNORED.items():
        tensors.ignore(*(f"{side}/{name}" for name in names))
    for side, names in _OFF.items():
        for name in names:
            if _number(tensors, f"{side}/{name}", 0):
                _refuse(tensors, f"{side}/{name}")
    source, target, output = (
        tensors.matrix(f"{name}/weight")
        for name in (
            "encoder/embeddings_0",
            "decoder/embeddings",
            "decoder/projection",
        )
    )
    bias = tensors.take_if_there("decoder/projection/bias")
    weights, arguments = embedding_weights(
        source, target, output, bias, vocabularies
    )
    width = source.shape[1]
    activation = _of_both(
        tensors, "activation", lambda name: _number(tensors, name)
    )
    if activation not in _ACTIVATIONS:
        raise UserError(
            f"{tensors.origin}: the activation must be one of the numbers "
            f"{', '.join(map(str, _ACTIVATIONS))} of CTranslate2. Received: "
            f"{activation}"
        )
    for side in ("encoder", "decoder"):
        number = 0
        while tensors.has(f"{side}/layer_{number}/ffn/linear_0/weight"):
            weights |= _block(tensors, side, number)
            if activation == _SIGMOID_GELU:
                as_silu(weights, f"{side}_block_{number + 1}/feed_forward")
            number += 1
        arguments[f"num_{side}_layers"] = number
    first = tensors.matrix("encoder/layer_0/ffn/linear_0/weight")
    final_norm = _of_both(
        tensors, "layer_norm/gamma", lambda name: tensors.has(name)
    )
    if final_norm:
        for side in ("encoder", "decoder"):
            weights |= _norm(tensors, f"{side}/layer_norm", f"{side}_norm")
    key_bias = any(
        value.any() for path, value in weights.items() if _is_key_bias(path)
    )
    if not key_bias:
        weights = {p: v for p, v in weights.items() if not _is_key_bias(p)}
    weights, positions = with_positions(weights, *_tables(tensors, width))
    pre_norm = bool(
        _of_both(tensors, "pre_norm", lambda name: _number(tensors, name))
    )
    return weights, arguments | dict(
        hidden_dim=width,
        intermediate_dim=len(first),
        num_heads=_of_both(
            tensors, "num_heads", lambda name: _number(tensors, name)
        ),
        activation=_ACTIVATIONS[activation],
        layer_norm_epsilon=config["epsilon"],
        normalize_first=pre_norm,
        final_norm=None if final_norm == pre_norm else final_norm,
        key_bias=key_bias,
        embedding_scale=_of_both(
            tensors,
            "scale_embeddings",
            lambda name: _embedding_scale(tensors, name, width),
        ),
        encode_end=config["add_source_eos"],
        **positions,
    )


def _is_key_bias(path):
    return path.endswith("/key/bias")


def _refuse(tensors, name):
    value = tensors.tensors[name]
    shown = value.item() if value.shape == () else f"of shape {value.shape}"
    raise UserError(
        f"{tensors.origin}: a model with {name} cannot be imported. "
        f"Received: {shown}"
    )


def _embedding_scale(tensors, name, width):
    """The argument of `Transformer`: `None` for the root of the width."""
    if not tensors.has(name):
        return None
    is_flag = tensors.take(name).dtype.kind == "i"
    value = _number(tensors, name)
    if is_flag:
        return None if value else 1.0
    return None if np.isclose(value, width**0.5, rtol=1e-6) else value


def _tables(tensors, width):
    """The tables of positions of both sides."""
    for side in ("encoder", "decoder"):
        name = f"{side}/position_encodings/encodings"
        table = tensors.take_if_there(name)
        if table is None:
            # CTranslate2 counts from 1 then, as OpenNMT-tf does.
            table = waves(_NUM_POSITIONS, width, first=1).astype("float32")
        if table.shape[1:] != (width,):
            raise UserError(
                f"{tensors.origin}: {name} must be a table of {width} columns. "
                f"Received the shape {table.shape}"
            )
        yield table


def _block(tensors, side, number):
    theirs, ours = f"{side}/layer_{number}", f"{side}_block_{number + 1}"
    found = _attention(
        tensors,
        f"{theirs}/self_attention",
        f"{ours}/attention",
        (("query", "key", "value"), ("output",)),
    )
    if side == "decoder":
        found |= _attention(
            tensors,
            f"{theirs}/attention",
            f"{ours}/cross_attention",
            (("query",), ("key", "value"), ("output",)),
        )
    network = f"{ours}/feed_forward"
    for place, part in enumerate(("intermediate", "output")):
        found |= _linear(
            tensors, f"{theirs}/ffn/linear_{place}", network, (part,)
        )
    return found | _norm(
        tensors,
        f"{theirs}/ffn/layer_norm",
        f"{network}_residual/layer_norm",
    )


def _attention(tensors, theirs, ours, parts):
    found = {}
    for place, names in enumerate(parts):
        found |= _linear(tensors, f"{theirs}/linear_{place}", ours, names)
    norm = f"{ours}_residual/layer_norm"
    return found | _norm(tensors, f"{theirs}/layer_norm", norm)


def _linear(tensors, theirs, ours, parts):
    """Cuts a product with the matrices of several parts below each other."""
    matrix = tensors.matrix(f"{theirs}/weight")
    if len(matrix) % len(parts):
        raise UserError(
            f"{tensors.origin}: {theirs}/weight must have {len(parts)} parts "
            f"of equal size. Received the shape {matrix.shape}"
        )
    bias = tensors.take_if_there(f"{theirs}/bias")
    if bias is None:
        bias = np.zeros(len(matrix), "float32")
    found = {}
    for part, rows, values in zip(
        parts,
        np.split(matrix, len(parts)),
        np.array_split(bias, len(parts)),
        strict=True,
    ):
        found[f"{ours}/{part}/kernel"] = np.array(rows.T)
        found[f"{ours}/{part}/bias"] = np.array(values)
    return found


def _norm(tensors, theirs, ours):
    return {
        f"{ours}/{name}": tensors.take(f"{theirs}/{name}")
        for name in ("gamma", "beta")
    }


def _refuse_others(tensors):
    others = tensors.others()
    if others:
        _refuse(tensors, others[0])


def _decoding(folder):
    """Returns the search options of a folder; CTranslate2's own without any."""
    search = {}
    file = folder / EXPORT_FILE
    if file.is_file():
        content = read_json(file, dict[str, Any])
        search = section(content, "search", "search", file)
    limits = length_limits(_MOST_TOKENS + 1)
    options = limits | search_options(_SEARCH | search)
    # That of CTranslate2 is another one.
    options.pop("patience", None)
    # Its length penalty is length ** penalty.
    return options | {"length_offset": 0.0}
