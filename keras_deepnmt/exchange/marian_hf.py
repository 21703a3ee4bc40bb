"""Marian models in Hugging Face's layout, such as OPUS-MT's.

A folder has `config.json`, the weights, `source.spm`, `target.spm` and
`vocab.json`, with `target_vocab.json` if the sides have vocabularies of their
own. Ids of the folder become those of this package: padding, unknown, begin and
end first, then all others in their order.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.data.model_files import with_vocabulary
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.block_names import BlockNames
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.sinusoids import position_encoding
from keras_deepnmt.exchange.tensor_files import read_tensors
from keras_deepnmt.exchange.vocabulary import (
    read_sentencepiece,
    unused_name,
    with_tags,
)
from keras_deepnmt.json_files import read_json
from keras_deepnmt.masks import BEGIN_ID, PADDING_ID

FORMAT = "marian-hf"
# The epsilon of PyTorch's layer normalization, which the layout does not name.
_EPSILON = 1e-5
# The logit of padding. No token is chosen with it, and no sum changes; label
# smoothing still counts it, so it must not be larger.
NEVER = -100.0
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
    source = _Vocabulary(folder, "vocab.json", config)
    target = source
    if not shared:
        target = _Vocabulary(folder, "target_vocab.json", config)
        target.check_size(config.get("decoder_vocab_size"))
    source.check_size(config["vocab_size"])
    tensors = read_tensors(folder)
    arguments = _arguments(config, len(source), len(target), shared)
    weights = NamedTensors(tensors, folder)
    positions, tables = _positions(weights, arguments)
    arguments |= positions
    values = _weights(weights, arguments, source, target) | tables
    weights.refuse_others()
    return ImportedModel(
        str(folder),
        FORMAT,
        arguments,
        values,
        source.tokenizer(Path(source_tokenizer or folder / "source.spm")),
        target.tokenizer(Path(target_tokenizer or folder / "target.spm")),
        _decoding(folder, config, target),
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


class _Vocabulary:
    """The pieces of a vocabulary file, in the order of this package's ids."""

    def __init__(self, folder, name, config):
        self.file = folder / name
        table = _read_object(self.file, int)
        if not table or sorted(table.values()) != list(range(len(table))):
            raise UserError(
                f"{self.file}: must map pieces to the ids from 0 on, each once."
            )
        self.names = sorted(table, key=table.__getitem__)
        self.unknown = table.get("<unk>")
        if self.unknown is None:
            raise UserError(f"{self.file}: has no piece <unk>.")
        self.padding = self._id(config, "pad_token_id")
        self.end = self._id(config, "eos_token_id")
        self.start = self._id(config, "decoder_start_token_id")
        if self.start in (self.end, self.unknown):
            raise UserError(
                f"{folder / 'config.json'}: `decoder_start_token_id` must be "
                "the padding or a token of its own. Received: "
                f"{self.start}, {self.names[self.start]}"
            )
        # In the order of the ids 0 to 3 of this package.
        special = [self.padding, self.unknown, self.start, self.end]
        # The id in the file of each id of this package.
        order = special + [i for i in range(len(table)) if i not in special]
        self.order = np.array(order[: len(order) - self._filling(config)])

    def _filling(self, config):
        """The number of pieces at the end that no text has."""
        numbers = config.get(FILLING_KEY, {})
        number = isinstance(numbers, dict) and numbers.get(self.file.name, 0)
        if type(number) is not int or not 0 <= number < len(self.names) - 4:
            raise UserError(
                f"{self.file}: `{FILLING_KEY}` of config.json must be the "
                f"number of its last pieces. Received: {numbers!r}"
            )
        return number

    def _id(self, config, key):
        value = config[key]
        if not 0 <= value < len(self.names):
            raise UserError(
                f"{self.file}: `{key}` of config.json must be one of its ids, "
                f"0..{len(self.names) - 1}. Received: {value}"
            )
        return value

    def __len__(self):
        return len(self.order)

    def check_size(self, size):
        """Refuses a configuration that counts other pieces."""
        if size is not None and size != len(self.names):
            raise UserError(
                f"{self.file}: must have the {size} pieces that config.json "
                f"names. Received: {len(self.names)}"
            )

    def tokenizer(self, file):
        """Returns the SentencePiece model of a file, with these ids."""
        names = [self.names[i] for i in self.order]
        names[BEGIN_ID] = unused_name("<s>", names)
        return with_vocabulary(*with_tags(read_sentencepiece(file), names))


def _weights(tensors, arguments, source, target):
    """Returns the weights of the model by their paths."""
    found = {}
    shared = arguments["share_embeddings"]
    encoder, decoder = (
        f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")
    )
    if shared:
        name = next(
            (n for n in ("model.shared.weight", encoder) if tensors.has(n)),
            "model.shared.weight",
        )
        tensors.ignore("model.shared.weight", encoder, decoder)
        embedding = _rows(tensors.take(name), source, tensors.origin, name)
        found["shared_embedding/embeddings"] = _without_padding(
            embedding, source
        )
        target_name = "shared_embedding"
    else:
        for side, name, vocabulary in (
            ("source", encoder, source),
            ("target", decoder, target),
        ):
            rows = _rows(tensors.take(name), vocabulary, tensors.origin, name)
            found[f"{side}_embedding/embeddings"] = _without_padding(
                rows, vocabulary
            )
        tensors.ignore("model.shared.weight")
        target_name = "target_embedding"
    if arguments["tie_output_embedding"]:
        tensors.ignore("lm_head.weight")
    else:
        name = "lm_head.weight"
        rows = _rows(tensors.take(name), target, tensors.origin, name)
        rows = _without_padding(rows, target)
        found[f"{target_name}/reverse_embeddings"] = rows.T
    bias = np.zeros(len(target.names), "float32")
    if tensors.has("final_logits_bias"):
        bias = tensors.take("final_logits_bias").reshape(-1)
    bias = _rows(bias, target, tensors.origin, "final_logits_bias").copy()
    if target.start == target.padding:
        # Their padding is the begin token here. That of this package is new.
        bias[PADDING_ID] = NEVER
    found["output_bias/bias"] = bias
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


def _rows(tensor, vocabulary, folder, name):
    if len(tensor) != len(vocabulary.names):
        raise UserError(
            f"{folder}: {name} must have a row for each of the "
            f"{len(vocabulary.names)} pieces of {vocabulary.file.name}. "
            f"Received: {len(tensor)}"
        )
    return tensor[vocabulary.order]


def _without_padding(rows, vocabulary):
    """Sets the row of a new padding token to zero."""
    if vocabulary.start == vocabulary.padding:
        rows[PADDING_ID] = 0.0
    return rows


def _decoding(folder, config, target) -> dict[str, Any]:
    """Returns the options of the search that the folder asks for."""
    file = folder / "generation_config.json"
    given = dict(config)
    if file.is_file():
        given |= _read_object(file)
    never = {target.padding}
    for words in given.get("bad_words_ids") or []:
        if not isinstance(words, list) or len(words) != 1:
            raise UserError(
                f"{folder}: `bad_words_ids` must be of single tokens, since "
                f"others cannot be imported. Received: {words}"
            )
        never.add(words[0])
    refused = never - {target.padding, target.unknown, target.start}
    if refused:
        raise UserError(
            f"{folder}: `bad_words_ids` must be the padding or the unknown "
            "token, since others cannot be imported. Received: "
            f"{sorted(refused)}"
        )
    penalty = given.get("length_penalty")
    penalty = 1.0 if penalty is None else float(penalty)
    options = {
        "num_beams": given.get("num_beams") or 1,
        # Their length penalty is length ** penalty.
        "length_penalty": max(penalty, 0.0),
        "length_offset": 0.0,
        "allow_unknown": target.unknown not in never,
    }
    if not math.isfinite(penalty):
        raise UserError(
            f"{folder}: `length_penalty` must be finite. Received: {penalty}"
        )
    return options
