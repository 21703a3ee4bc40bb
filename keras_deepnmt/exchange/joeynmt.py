"""Transformers of JoeyNMT 2: a folder that `joeynmt train` wrote.

It has `config.yaml`, checkpoints, `src_vocab.txt`, `trg_vocab.txt` and the
SentencePiece models or codes of subword-nmt.
"""

from pathlib import Path
from typing import Any

from keras_deepnmt.data.merge_codes import MergeOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.block_names import BlockNames
from keras_deepnmt.exchange.embedding_weights import embedding_weights
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.merge_files import read_codes
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.sinusoids import (
    position_encoding,
    with_sines_first,
)
from keras_deepnmt.exchange.tensor_files import read_tensor_file
from keras_deepnmt.exchange.vocabulary import (
    Vocabulary,
    read_pieces,
    read_sentencepiece,
)
from keras_deepnmt.yaml_files import read_yaml

FORMAT = "joeynmt"
_CONFIG = "config.yaml"
_EPSILON = 1e-6
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu"}
_PROJECTIONS = {
    "query": "q_layer",
    "key": "k_layer",
    "value": "v_layer",
    "output": "output_layer",
}
_FEED_FORWARD = {
    "intermediate": "feed_forward.pwff_layer.0",
    "output": "feed_forward.pwff_layer.3",
}
_BLOCKS = {
    "encoder": BlockNames(
        {"attention": "src_src_att"},
        _PROJECTIONS,
        _FEED_FORWARD,
        {"attention": "layer_norm", "feed_forward": "feed_forward.layer_norm"},
    ),
    "decoder": BlockNames(
        {"attention": "trg_trg_att", "cross_attention": "src_trg_att"},
        _PROJECTIONS,
        _FEED_FORWARD,
        {
            "attention": "x_layer_norm",
            "cross_attention": "dec_layer_norm",
            "feed_forward": "feed_forward.layer_norm",
        },
    ),
}
_LAYERS = {s: ("model", s, "num_layers") for s in ("encoder", "decoder")}
_SPECIAL = {
    "unknown": ("unk", "<unk>"),
    "padding": ("pad", "<pad>"),
    "begin": ("bos", "<s>"),
    "end": ("eos", "</s>"),
}
# The file of a side's tokenizer, by its type.
_FILES = {"sentencepiece": "model_file", "subword-nmt": "codes"}


def is_joeynmt(path: Path) -> bool:
    """Whether a folder, or the folder of a checkpoint, is of this format."""
    folder = path.parent if path.suffix == ".ckpt" else path
    file = folder / _CONFIG
    if not file.is_file():
        return False
    config, _ = read_yaml(file)
    return (
        isinstance(config, dict)
        and isinstance(config.get("model"), dict)
        and {"encoder", "decoder"} <= config["model"].keys()
    )


def load_joeynmt(
    path: str | Path,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> ImportedModel:
    """Reads a Transformer that JoeyNMT 2 trained.

    Its logits and ids are those of JoeyNMT, at the ids of this package.

    Args:
        path: the folder, whose `best.ckpt` is read, or a checkpoint in it.
        source_tokenizer: SentencePiece model, or codes of subword-nmt, in
            place of the file that `config.yaml` names.
        target_tokenizer: that of the target side.

    Returns:
        The model, its tokenizers and the options of its search.

    Raises:
        UserError: if a file is missing or damaged, the vocabularies do not fit
            the weights, or the configuration asks for what this package does
            not have.

    Example:
    >>> from keras_deepnmt.exchange import load_joeynmt
    >>> load_joeynmt("models/iwslt14").arguments["normalize_first"]
    True
    """
    path = Path(path)
    checkpoint = path if path.suffix == ".ckpt" else path / "best.ckpt"
    folder = checkpoint.parent
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder.")
    config = _Config(folder / _CONFIG)
    arguments, scales = _arguments(config)
    vocabularies = tuple(
        _vocabulary(config, folder, side) for side in ("src", "trg")
    )
    protos = [
        _tokenizer(config, folder, side, vocabulary, tokenizer)
        for side, vocabulary, tokenizer in zip(
            ("src", "trg"),
            vocabularies,
            (source_tokenizer, target_tokenizer),
            strict=True,
        )
    ]
    tensors = NamedTensors(
        read_tensor_file(checkpoint, "model_state"), checkpoint
    )
    weights, sizes = embedding_weights(
        tensors.matrix("src_embed.lut.weight"),
        tensors.matrix("trg_embed.lut.weight"),
        tensors.matrix("decoder.output_layer.weight"),
        None,
        vocabularies,
    )
    for side, blocks in _BLOCKS.items():
        for number in range(arguments[f"num_{side}_layers"]):
            weights |= blocks.weights(
                tensors,
                f"{side}.layers.{number}",
                f"{side}_block_{number + 1}",
            )
        if arguments["final_norm"]:
            weights |= tensors.norm(f"{side}.layer_norm", f"{side}_norm")
        tensors.ignore(f"{side}.pe.pe")
    tensors.refuse_others()
    return ImportedModel(
        str(path),
        FORMAT,
        {**arguments, **sizes, **scales},
        with_sines_first(weights, arguments["hidden_dim"]),
        *protos,
        decoding=_decoding(config),
        facts={
            "name": config.get("name", default=folder.name),
            "source": config.get("data", "src", "lang"),
            "target": config.get("data", "trg", "lang"),
        },
    )


class _Config:
    """The values of `config.yaml`, by their keys."""

    def __init__(self, file):
        self.file = file
        try:
            self.content, _ = read_yaml(file)
        except OSError as error:
            raise UserError(
                f"{file}: cannot be read ({error.strerror})."
            ) from error

    def get(self, *keys, default=None) -> Any:
        """Returns a value, or the default."""
        value = self.content
        for key in keys:
            if not isinstance(value, dict) or value.get(key) is None:
                return default
            value = value[key]
        return value

    def take(self, *keys, kind=None, default=None) -> Any:
        """Returns a value of a type."""
        value = self.get(*keys, default=default)
        is_flag = isinstance(value, bool) and kind is not bool
        if not isinstance(value, kind) or is_flag:
            named = getattr(kind, "__name__", "number")
            self.refuse(keys, f"must be of type {named}", value)
        return value

    def must_be(self, keys, allowed, value, reason="") -> None:
        """Refuses a value that is not one of those allowed."""
        if value not in allowed:
            listed = " or ".join(map(str, allowed))
            self.refuse(
                keys,
                f"must be {listed}, since others cannot be imported",
                value,
                reason,
            )

    def refuse(self, keys, rule, value, reason="") -> None:
        """Raises the error."""
        message = f"{self.file}: `{'.'.join(keys)}` {rule}. Received: {value}"
        raise UserError(f"{message}. {reason}" if reason else message)

    def equal(self, key, kind, **options) -> Any:
        """Returns a value that encoder and decoder must have in common."""
        keys = key.split(".")
        values = [
            self.take("model", side, *keys, kind=kind, **options)
            for side in ("encoder", "decoder")
        ]
        if values[0] != values[1]:
            self.refuse(
                ("model", "decoder", *keys),
                f"must be that of the encoder, {values[0]}",
                values[1],
            )
        return values[0]


def _arguments(config):
    for side in ("encoder", "decoder"):
        # The default of JoeyNMT is another one on each side.
        default = "recurrent" if side == "encoder" else "transformer"
        kind = config.get("model", side, "type", default=default)
        config.must_be(("model", side, "type"), ("transformer",), kind)
        alpha = config.get("model", side, "alpha", default=1.0)
        config.must_be(("model", side, "alpha"), (1.0,), alpha)
        config.must_be(
            ("model", side, "layer_norm"),
            ("pre", "post"),
            config.get("model", side, "layer_norm"),
            # Without the key JoeyNMT's encoder is pre-norm without a norm after
            # the stack, and its decoder is post-norm.
            "Without this key JoeyNMT's encoder and decoder differ.",
        )
    activation = config.equal("activation", str, default="relu")
    config.must_be(("model", "encoder", "activation"), _ACTIVATIONS, activation)
    is_pre_norm = config.equal("layer_norm", str) == "pre"
    width = config.equal("hidden_size", int)
    is_scaled = config.equal("embeddings.scale", bool, default=False)
    dropout = config.get("model", "encoder", "dropout", default=0.1)
    arguments = dict(
        hidden_dim=width,
        intermediate_dim=config.equal("ff_size", int),
        num_heads=config.equal("num_heads", int),
        num_encoder_layers=config.take(
            "model", "encoder", "num_layers", kind=int
        ),
        num_decoder_layers=config.take(
            "model", "decoder", "num_layers", kind=int
        ),
        position_encoding=position_encoding(width),
        dropout=dropout,
        attention_dropout=dropout,
        activation=_ACTIVATIONS[activation],
        layer_norm_epsilon=_EPSILON,
        normalize_first=is_pre_norm,
        final_norm=is_pre_norm,
        key_bias=True,
    )
    return arguments, {} if is_scaled else {"embedding_scale": 1.0}


def _special_symbols(config):
    """Returns the special symbols; the first four are those of `_SPECIAL`."""
    place = ("data", "special_symbols")
    symbols = [
        config.get(*place, f"{key}_token", default=default)
        for key, default in _SPECIAL.values()
    ]
    separator = config.get(*place, "sep_token")
    return symbols + ([] if separator is None else [separator])


def _vocabulary(config, folder, side):
    symbols = _special_symbols(config)
    special = dict(zip(_SPECIAL, symbols, strict=False))
    tags = config.get("data", "special_symbols", "lang_tags", default=[])
    config.must_be(("data", "special_symbols", "lang_tags"), ([],), tags)
    file = folder / f"{side}_vocab.txt"
    names = list(dict.fromkeys([*symbols, *read_pieces(file)]))
    return Vocabulary(
        file,
        names,
        **{key: names.index(piece) for key, piece in special.items()},
    )


def _tokenizer(config, folder, side, vocabulary, tokenizer):
    def check(*keys, allowed, default, reason=""):
        value = config.get("data", side, *keys, default=default)
        config.must_be(("data", side, *keys), allowed, value, reason)
        return value

    check("lowercase", allowed=(False,), default=False)
    check("normalize", allowed=(False,), default=False)
    check("has_prompt", allowed=(False,), default=False)
    check("tokenizer_cfg", "pretokenizer", allowed=("none",), default="none")
    level = check("level", allowed=("bpe", "char"), default=None)
    if level == "char":
        return vocabulary.character_tokenizer()
    key = "tokenizer_type"
    if config.get("data", side, key) is None:
        key = "bpe_type"
    kind = check(key, allowed=tuple(_FILES), default="sentencepiece")
    place = ("data", side, "tokenizer_cfg")
    if tokenizer is None:
        name = config.take(*place, _FILES[kind], kind=str)
        tokenizer = folder / Path(name).name
    if kind == "sentencepiece":
        proto = read_sentencepiece(Path(tokenizer))
        return vocabulary.tokenizer(vocabulary.restrict(proto))
    separator = config.take(*place, "separator", kind=str, default="@@")
    if not separator:
        config.refuse((*place, "separator"), "must not be empty", separator)
    special = _special_symbols(config)
    options = MergeOptions(
        **read_codes(Path(tokenizer)),
        separator=separator,
        vocabulary=[name for name in vocabulary.names if name not in special],
        splits_at_all_spaces=True,
    )
    return vocabulary.merge_tokenizer(options)


def _decoding(config) -> dict[str, Any]:
    """Returns the options of the search that the configuration asks for."""
    beams = config.take("testing", "beam_size", kind=int, default=1)
    penalty = config.take("testing", "beam_alpha", kind=int | float, default=-1)
    # The name of earlier versions, which JoeyNMT still reads.
    penalty = config.take("testing", "alpha", kind=int | float, default=penalty)
    place = ("testing", "repetition_penalty")
    repeated = config.take(*place, kind=int | float, default=-1)
    if repeated > 1:
        rule = "must be at most 1, since others cannot be imported"
        config.refuse(place, rule, repeated)
    ngram = config.take("testing", "no_repeat_ngram_size", kind=int, default=-1)
    allow = config.take("testing", "generate_unk", kind=bool, default=True)
    shortest = config.take("testing", "min_output_length", kind=int, default=1)
    place = ("testing", "max_output_length")
    longest = config.take(*place, kind=int, default=-1)
    if longest == 0:
        config.refuse(place, "must be at least 1, or -1", longest)
    return {
        "num_beams": max(beams, 1),
        "min_length": max(shortest, 0),
        # Without a limit theirs is 1.5 times the longest source of a batch.
        "max_length_ratio": 1.5 if longest < 0 else 0.0,
        "max_extra_tokens": max(longest, 0),
        # Theirs is ((5 + length) / 6) ** alpha.
        "length_penalty": max(float(penalty), 0.0),
        "length_offset": 5.0,
        "no_repeat_ngram_size": max(ngram, 0),
        "allow_unknown": allow,
    }
