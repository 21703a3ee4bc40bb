"""Marian models in Hugging Face's layout, such as OPUS-MT's.

A folder has `config.json`, the weights, `source.spm`, `target.spm` and
`vocab.json`, with `target_vocab.json` if the sides have vocabularies of their
own. Ids of the folder become those of this package: padding, unknown, begin and
end first, then all others in their order.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.block_names import BlockNames
from keras_deepnmt.exchange.config_values import length_limits, positive_integer
from keras_deepnmt.exchange.engine_folders import EXPORT_FILE
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.sinusoids import position_encoding
from keras_deepnmt.exchange.tensor_files import read_tensors
from keras_deepnmt.exchange.vocabulary import (
    NEVER,
    Vocabulary,
    read_sentencepiece,
)
from keras_deepnmt.json_files import read_json
from keras_deepnmt.masks import BEGIN_ID, PADDING_ID, UNKNOWN_ID

FORMAT = "marian-hf"
# The epsilon of PyTorch's layer normalization, which the layout does not name.
_EPSILON = 1e-5
# Our own exports name theirs here, which Transformers ignores.
EPSILON_KEY = "layer_norm_epsilon"
# And how many pieces of each side's vocabulary file only fill it up, so that
# both have one size, which Transformers needs.
FILLING_KEY = "filling_pieces"
ACTIVATIONS = {
    "swish": "silu",
    "silu": "silu",
    "relu": "relu",
    "gelu": "gelu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
}
# Of sines and cosines in a file with half precision.
_ROUNDING = 2e-3
_PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
_SELF_ATTENTION = {"attention": "self_attn"}
_ATTENTIONS = {**_SELF_ATTENTION, "cross_attention": "encoder_attn"}
BLOCKS = {
    side: BlockNames(
        attentions,
        _PROJECTIONS,
        {"intermediate": "fc1", "output": "fc2"},
        {
            **{n: f"{a}_layer_norm" for n, a in attentions.items()},
            "feed_forward": "final_layer_norm",
        },
    )
    for side, attentions in (
        ("encoder", _SELF_ATTENTION),
        ("decoder", _ATTENTIONS),
    )
}
_TYPES = {
    "vocab_size": int,
    "d_model": int,
    "encoder_layers": int,
    "decoder_layers": int,
    "encoder_attention_heads": int,
    "decoder_attention_heads": int,
    "encoder_ffn_dim": int,
    "decoder_ffn_dim": int,
    "activation_function": str,
    "pad_token_id": int,
    "eos_token_id": int,
    "decoder_start_token_id": int,
}
_SIZES = [
    key
    for key, kind in _TYPES.items()
    if kind is int and not key.endswith("_id")
]
# `early_stopping` of Transformers for each value of `patience`.
STOPPING = {0.0: "never", 1.0: True}
# Before this version of Transformers its class of Marian took the padding out
# of the probabilities; since then `renormalize_logits` of the search does.
_RENORMALIZED_SINCE = (4, 32)
# Options of the search that this package lacks, and what leaves them out, as
# `null` and empty values do.
_NO_SUCH_SEARCH = {
    "repetition_penalty": 1,
    "encoder_repetition_penalty": 1,
    "encoder_no_repeat_ngram_size": 0,
    "do_sample": False,
    "penalty_alpha": 0,
    # Those of this package are not the same.
    "num_beam_groups": 1,
    **dict.fromkeys(
        (
            "forced_bos_token_id",
            "forced_decoder_ids",
            "suppress_tokens",
            "begin_suppress_tokens",
            "sequence_bias",
            "exponential_decay_length_penalty",
            "force_words_ids",
            "constraints",
        )
    ),
}
# Keys that some versions write, and the values that this package can express.
_FIXED = {
    "scale_embedding": (True,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "add_bias_logits": (False,),
    "static_position_embeddings": (True,),
    "extra_pos_embeddings": (0,),
}


def is_marian(folder: Path) -> bool:
    """Whether a folder is of this format."""
    file = folder / "config.json"
    if not file.is_file():
        return False
    config = read_json(file)
    return isinstance(config, dict) and config.get("model_type") == "marian"


def load_marian(
    path: str | Path,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> ImportedModel:
    """Reads a Marian model in Hugging Face's layout.

    Its logits and the ids of its texts are those of `transformers`, at the ids
    of this package. Three kinds of text are read differently: the name of a
    special token in a text, such as `</s>`, is text and no special token; a tag
    such as `>>deu<<` that the vocabulary lacks, or that is not followed by a
    space, is text and not one token; and of several characters in a row that
    the side's SentencePiece model lacks, each that the vocabulary has is its
    piece, where `transformers` reads all of them as one unknown token.

    Args:
        path: the folder.
        source_tokenizer: SentencePiece model in place of `source.spm`.
        target_tokenizer: SentencePiece model in place of `target.spm`.

    Returns:
        The model, its tokenizers and the options of its search.

    Raises:
        UserError: if a file is missing or damaged, the vocabulary does not fit
            the weights, or the configuration asks for what this package does
            not have.

    Example:
    >>> from keras_deepnmt.exchange import load_marian
    >>> load_marian("opus-mt-de-en").arguments["num_encoder_layers"]
    6
    """
    folder = Path(path)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder.")
    config = _read_config(folder)
    shared = config.get("share_encoder_decoder_embeddings", True)
    size = config["vocab_size"]
    source = target = _read_vocabulary(folder / "vocab.json", config, size)
    if not shared:
        size = config.get("decoder_vocab_size")
        file = folder / "target_vocab.json"
        target = _read_vocabulary(file, config, size)
    tensors = read_tensors(folder)
    arguments = _arguments(config, len(source), len(target), shared)
    weights = NamedTensors(tensors, folder)
    positions, tables = _positions(weights, arguments)
    arguments |= positions
    values = _weights(weights, arguments, source, target) | tables
    weights.refuse_others()
    search = _read_search(folder, config)
    if _leaves_out_padding(search):
        # The padding begins translations, and it is another token here.
        values["output_bias/bias"][BEGIN_ID] = NEVER
    return ImportedModel(
        str(folder),
        FORMAT,
        arguments,
        values,
        *(
            vocabulary.tokenizer(read_sentencepiece(Path(file)))
            for vocabulary, file in (
                (source, source_tokenizer or folder / "source.spm"),
                (target, target_tokenizer or folder / "target.spm"),
            )
        ),
        _decoding(folder, search, target),
        {
            "name": config.get("_name_or_path") or folder.name,
            "source": config.get("source_lang"),
            "target": config.get("target_lang"),
        },
    )


def _read_config(folder):
    file = folder / "config.json"
    config = _read_object(file)
    for key, kind in _TYPES.items():
        value = config.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UserError(
                f"{file}: `{key}` must be of type {kind.__name__}. Received: "
                f"{value!r}"
            )
    for key in (*_SIZES, "max_position_embeddings"):
        positive_integer(config.get(key, 1), key, file)
    for key, allowed in _FIXED.items():
        if config.get(key, allowed[0]) not in allowed:
            raise UserError(
                f"{file}: `{key}` must be {allowed[0]!r}, since other models "
                f"cannot be imported. Received: {config[key]!r}"
            )
    if not config.get("scale_embedding", False):
        raise UserError(
            f"{file}: `scale_embedding` must be true, since other models "
            "cannot be imported. Received: false"
        )
    for key in ("attention_heads", "ffn_dim"):
        sides = [config[f"{side}_{key}"] for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise UserError(
                f"{file}: `encoder_{key}` and `decoder_{key}` must be equal. "
                f"Received: {sides[0]} and {sides[1]}"
            )
    if config["activation_function"] not in ACTIVATIONS:
        raise UserError(
            f"{file}: `activation_function` must be one of "
            f"{', '.join(ACTIVATIONS)}. Received: "
            f"{config['activation_function']}"
        )
    return config


def _read_object(file, values=Any) -> dict[str, Any]:
    """Reads a JSON object whose values are of a type."""
    try:
        return read_json(file, dict[str, values])
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error


def _arguments(config, source_size, target_size, shared) -> dict[str, Any]:
    width = config["d_model"]
    return dict(
        source_vocabulary_size=source_size,
        target_vocabulary_size=target_size,
        hidden_dim=width,
        intermediate_dim=config["encoder_ffn_dim"],
        num_heads=config["encoder_attention_heads"],
        num_encoder_layers=config["encoder_layers"],
        num_decoder_layers=config["decoder_layers"],
        position_encoding=position_encoding(width),
        share_embeddings=shared,
        tie_output_embedding=config.get("tie_word_embeddings", True),
        output_bias=True,
        dropout=config.get("dropout", 0.1),
        attention_dropout=config.get("attention_dropout", 0.0),
        activation=ACTIVATIONS[config["activation_function"]],
        layer_norm_epsilon=config.get(EPSILON_KEY, _EPSILON),
        key_bias=True,
        max_length=config.get("max_position_embeddings", 1024),
    )


def _read_vocabulary(file, config, size):
    """Reads a vocabulary file, which must have `size` pieces, if not `None`."""
    table = _read_object(file, int)
    if not table or sorted(table.values()) != list(range(len(table))):
        raise UserError(
            f"{file}: must map pieces to the ids from 0 on, each once."
        )
    if size is not None and size != len(table):
        raise UserError(
            f"{file}: must have the {size} pieces that config.json names. "
            f"Received: {len(table)}"
        )
    names = sorted(table, key=table.__getitem__)
    unknown = table.get("<unk>")
    if unknown is None:
        raise UserError(f"{file}: has no piece <unk>.")
    padding, end, start = (
        config[f"{name}_token_id"] for name in ("pad", "eos", "decoder_start")
    )
    vocabulary = Vocabulary(
        *(file, names, padding, unknown, start, end),
        filling=_filling(file, config, len(names)),
    )
    if start in (end, unknown):
        raise UserError(
            f"{file.parent / 'config.json'}: `decoder_start_token_id` must be "
            f"the padding or a token of its own. Received: {start}, "
            f"{names[start]}"
        )
    return vocabulary


def _filling(file, config, size):
    """The number of pieces at the end of a file that no text has."""
    numbers = config.get(FILLING_KEY, {})
    number = isinstance(numbers, dict) and numbers.get(file.name, 0)
    if type(number) is not int or not 0 <= number < size - 4:
        raise UserError(
            f"{file}: `{FILLING_KEY}` of config.json must be the number of its "
            f"last pieces. Received: {numbers!r}"
        )
    return number


def _weights(tensors, arguments, source, target):
    """Returns the weights of the model by their paths."""
    found = {}
    names = {
        "source": "model.encoder.embed_tokens.weight",
        "target": "model.decoder.embed_tokens.weight",
    }
    vocabularies = {"source": source, "target": target}
    output = "target_embedding"
    if arguments["share_embeddings"]:
        output = "shared_embedding"
        shared = "model.shared.weight"
        if tensors.has(names["source"]) and not tensors.has(shared):
            shared = names["source"]
        tensors.ignore(*names.values())
        names, vocabularies = {"shared": shared}, {"shared": target}
    for side, name in names.items():
        rows = vocabularies[side].rows(tensors.take(name), name)
        found[f"{side}_embedding/embeddings"] = rows
    tensors.ignore("model.shared.weight")
    if arguments["tie_output_embedding"]:
        tensors.ignore("lm_head.weight")
    else:
        name = "lm_head.weight"
        rows = target.rows(tensors.take(name), name)
        found[f"{output}/reverse_embeddings"] = rows.T
    bias = np.zeros(len(target.names), "float32")
    if tensors.has("final_logits_bias"):
        bias = tensors.take("final_logits_bias").reshape(-1)
    found["output_bias/bias"] = target.output_bias(bias)
    for side in ("encoder", "decoder"):
        for number in range(arguments[f"num_{side}_layers"]):
            theirs = f"model.{side}.layers.{number}"
            ours = f"{side}_block_{number + 1}"
            found |= BLOCKS[side].weights(tensors, theirs, ours)
    return found


def _positions(tensors, arguments):
    """Returns the arguments of the positions, and the weights of learned ones.

    Files that lack them have the waves r^(-2 i / D) of Transformers, r = 10000.
    """
    shape = arguments["max_length"], arguments["hidden_dim"]
    half = shape[1] // 2
    usual = arguments["position_encoding"]["SinusoidalPositionEncoding"]
    longest = [usual["max_wavelength"]]
    tables = []
    for side in ("encoder", "decoder"):
        name = f"model.{side}.embed_positions.weight"
        table = tensors.take_if_there(name)
        if table is None:
            table = _waves(*shape, longest[0]).astype("float32")
        if table.shape != shape:
            raise UserError(
                f"{tensors.origin}: {name} must have the shape {shape}. "
                f"Received: {table.shape}"
            )
        tables.append(table)
    # The last wave is the longest.
    first = float(tables[0][min(1, shape[0] - 1), half - 1])
    if 0 < first < 1:
        longest.append(float(f"{1 / math.asin(first):.6g}"))
    for number in longest:
        waves = _waves(*shape, number)
        if all(np.abs(table - waves).max() < _ROUNDING for table in tables):
            layer = {"SinusoidalPositionEncoding": {"max_wavelength": number}}
            return {"position_encoding": layer}, {}
    layer = {"max_length": shape[0], "add_to_inputs": True}
    return {
        "position_encoding": {"LearnedPositionEmbedding": layer},
        "share_position_encoding": False,
    }, {
        "position_encoding/table/embeddings": tables[0],
        "target_position_encoding/table/embeddings": tables[1],
    }


def _waves(length, width, longest):
    """The vectors of `layers.SinusoidalPositionEncoding`."""
    half = width // 2
    powers = np.arange(half) / max(half - 1, 1)
    angles = np.arange(length)[:, None] / longest**powers
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _read_search(folder, config) -> dict[str, Any]:
    """Reads the options of the search, which config.json may have, too."""
    file = folder / "generation_config.json"
    return config | (_read_object(file) if file.is_file() else {})


def _leaves_out_padding(given):
    """Whether probabilities are those of the tokens but a padding that begins.

    Its vector is zero, so that its logit would always be the same.
    """
    padding = given["pad_token_id"]
    if given["decoder_start_token_id"] != padding:
        return False
    renormalizes = given.get("renormalize_logits")
    if renormalizes is None:
        version = str(given.get("transformers_version", "0.0"))
        found = re.match(r"(\d+)\.(\d+)", version)
        return bool(found) and (
            tuple(map(int, found.groups())) < _RENORMALIZED_SINCE
        )
    return renormalizes and [padding] in (given.get("bad_words_ids") or [])


def _decoding(folder, given, target) -> dict[str, Any]:
    """Returns the options of the search that the folder asks for."""
    padding, unknown, start = (
        int(target.order[i]) for i in (PADDING_ID, UNKNOWN_ID, BEGIN_ID)
    )
    never = {padding}
    for words in given.get("bad_words_ids") or []:
        if not isinstance(words, list) or len(words) != 1:
            raise UserError(
                f"{folder}: `bad_words_ids` must be of single tokens, since "
                f"others cannot be imported. Received: {words}"
            )
        never.add(words[0])
    refused = never - {padding, unknown, start}
    if refused:
        raise UserError(
            f"{folder}: `bad_words_ids` must be the padding or the unknown "
            "token, since others cannot be imported. Received: "
            f"{sorted(refused)}"
        )
    for key, neutral in _NO_SUCH_SEARCH.items():
        if given.get(key) not in (None, neutral, [], {}):
            raise UserError(
                f"{folder}: `{key}` must be {json.dumps(neutral)}, since "
                f"others cannot be imported. Received: {given[key]!r}"
            )
    penalty = given.get("length_penalty")
    penalty = 1.0 if penalty is None else penalty
    is_number = isinstance(penalty, int | float)
    if not is_number or not math.isfinite(penalty) or penalty < 0:
        raise UserError(
            f"{folder}: `length_penalty` must be a finite number of at least "
            f"0, since others cannot be imported. Received: {penalty!r}"
        )
    # It counts the token before the first one, and only where the other option
    # is not there.
    shortest = max(_count(folder, given, "min_length") - 1, 0)
    if given.get("min_new_tokens") is not None:
        shortest = _count(folder, given, "min_new_tokens")
    options = {
        "num_beams": _count(folder, given, "num_beams") or 1,
        # Their length penalty is length ** penalty.
        "length_penalty": float(penalty),
        "length_offset": 0.0,
        "allow_unknown": unknown not in never,
        "min_length": shortest,
        "no_repeat_ngram_size": _count(folder, given, "no_repeat_ngram_size"),
    }
    for patience, stopping in STOPPING.items():
        if given.get("early_stopping") == stopping:
            options["patience"] = patience
    # The other one counts the token before the first one, too.
    most = _count(folder, given, "max_new_tokens")
    most = most or _count(folder, given, "max_length") - 1
    if most > 0:
        options |= length_limits(most)
    # Our own exports name limits that depend on the source here.
    file = folder / EXPORT_FILE
    limits = _read_object(file) if file.is_file() else {}
    for ours, theirs in (
        ("max_length_ratio", "length_ratio"),
        ("max_extra_tokens", "extra_tokens"),
    ):
        if theirs in limits:
            options[ours] = limits[theirs]
    return options


def _count(folder, given, key):
    """Returns an option that is a number of tokens or beams, or 0."""
    value = given.get(key)
    value = 0 if value is None else value
    if not isinstance(value, int) or value < 0:
        raise UserError(
            f"{folder}: `{key}` must be an integer of at least 0. Received: "
            f"{value!r}"
        )
    return int(value)
