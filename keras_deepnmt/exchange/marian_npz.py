"""Marian's own models: an `.npz` file, and vocabularies beside it.

Its configuration is in the file. Marian starts a translation with a vector of
zeros, which belongs to no piece, and has no padding: both are new tokens here.
"""

import math
import re
import zipfile
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.embedding_weights import embedding_weights
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.marian_decoder_layers import (
    SELF_ATTENTION,
    decoder_kind,
    decoder_layer,
    decoder_layer_weights,
)
from keras_deepnmt.exchange.marian_vocabulary import read_marian_vocabulary
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.sigmoid_gelu import as_silu
from keras_deepnmt.exchange.tensor_files import read_tensor_file
from keras_deepnmt.exchange.vocabulary import read_sentencepiece
from keras_deepnmt.yaml_files import parse_yaml, read_yaml

FORMAT = "marian-npz"
_CONFIG = "special:model.yml"
_EPSILON = 1e-6
_ACTIVATIONS = {
    "relu": "relu",
    "swish": "silu",
    "gelu": "gelu",
    "sigmoid": "sigmoid",
}
# Until then Marian's gelu was x sigmoid(1.702 x).
_EXACT_GELU_SINCE = (1, 12, 3)
# The options that name an activation, and the networks in a block with it.
_NETWORKS = {
    "transformer-ffn-activation": "feed_forward",
    "transformer-aan-activation": "attention/feed_forward",
}
# Endings of vocabularies that are lists of pieces.
_LISTS = (".yml", ".yaml", ".json")
_SIZES = ("transformer-heads", "enc-depth", "dec-depth")
# The values of options that this package can express; the first is taken where
# the option is missing.
_FIXED = {
    "type": ("transformer",),
    "transformer-no-projection": (False,),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,),
    "transformer-disable-position-embeddings": (False,),
    "transformer-attention-mask": ("default",),
    "transformer-no-bias": (False,),
    "transformer-no-affine": (False,),
    "transformer-pool": (False,),
    "lemma-dim-emb": (0,),
    "right-left": (False,),
    "ulr": (False,),
    "input-types": ([], ["sequence", "sequence"]),
}
# What the operations before and after each sub-layer mean, without dropout: by
# `transformer-preprocess` and `transformer-postprocess`, whether the norm is
# first.
_NORMS = {("", "an"): False, ("n", "a"): True}
_DEFAULTS = {
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-ffn-activation": "swish",
    "tied-embeddings": False,
    "tied-embeddings-all": False,
    "tied-embeddings-src": False,
}
_FACTOR = "max-length-factor"
# Those of Marian's decoder that have a counterpart here, with its defaults.
_SEARCH = {
    "beam-size": 12,
    "normalize": 0.0,
    "allow-unk": False,
    _FACTOR: 3.0,
}


def is_marian_npz(path: Path) -> bool:
    """Whether a path is a file of this format or a folder with one."""
    if path.is_dir():
        return any(map(_has_config, path.glob("*.npz")))
    return path.suffix == ".npz"


def load_marian_npz(
    path: str | Path,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> ImportedModel:
    """Reads a model of Marian.

    Its vocabularies are those that `decoder.yml` beside it names (or
    `FILE.decoder.yml`), or else files beside it: `source.spm` and `target.spm`,
    or the only one that ends with `.spm`, `vocab.yml` or `vocab.json`. With a
    vocabulary that is no SentencePiece model, `source.spm` and `target.spm` cut
    the texts, or the given ones.

    Args:
        path: the `.npz` file, or a folder with one.
        source_tokenizer: SentencePiece model of the source side.
        target_tokenizer: that of the target side.

    Returns:
        The model, its tokenizers and the options of its search.

    Raises:
        UserError: if a file is missing or damaged, a vocabulary does not fit
            the weights, or the configuration asks for what this package does
            not have.

    Example:
    >>> from keras_deepnmt.exchange import load_marian_npz
    >>> load_marian_npz("marian/model.npz").arguments["num_encoder_layers"]
    6
    """
    file = _model_file(Path(path))
    tensors = NamedTensors(read_tensor_file(file), file)
    config = _read_config(tensors)
    decoder = _read_decoder(file)
    vocabularies, protos = [], []
    for number, (side, given) in enumerate(
        (("source", source_tokenizer), ("target", target_tokenizer))
    ):
        found = _vocabulary_file(file, side, decoder, number, given)
        vocabulary = read_marian_vocabulary(found, _rows(tensors, side))
        vocabularies.append(vocabulary)
        tokenizer = _tokenizer_file(file.parent, side, found, given)
        protos.append(vocabulary.tokenizer(read_sentencepiece(tokenizer)))
    weights, arguments = _model(tensors, config, vocabularies)
    tensors.refuse_others()
    return ImportedModel(
        str(file),
        FORMAT,
        arguments,
        weights,
        *protos,
        _decoding(decoder),
        {"name": file.stem, "source": None, "target": None},
    )


def _has_config(file):
    try:
        with zipfile.ZipFile(file) as opened:
            return f"{_CONFIG}.npy" in opened.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _model_file(path):
    if path.is_file():
        return path
    if not path.is_dir():
        raise UserError(f"{path}: no such file or folder.")
    files = sorted(filter(_has_config, path.glob("*.npz")))
    if len(files) != 1:
        listed = ", ".join(file.name for file in files) or "none"
        raise UserError(
            f"{path}: must have one .npz file with {_CONFIG}, or give the "
            f"file. Received: {listed}"
        )
    return files[0]


def _read_config(tensors):
    if not tensors.has(_CONFIG):
        raise UserError(
            f"{tensors.origin}: lacks {_CONFIG}, so it is no model of Marian."
        )
    text = tensors.take(_CONFIG).tobytes().rstrip(b"\0")
    place = f"{tensors.origin}, {_CONFIG}"
    config, _ = parse_yaml(text.decode(errors="replace"), place)
    if not isinstance(config, dict):
        raise UserError(f"{place}: must have options. Received: {config}")
    for key, allowed in _FIXED.items():
        value = config.get(key, allowed[0])
        if value not in allowed:
            raise UserError(
                f"{place}: `{key}` must be {allowed[0]}, since other models "
                f"cannot be imported. Received: {value}"
            )
    # Marian 1.10 brought the option with the norm of keys and values.
    is_before_1_10 = "transformer-postprocess-top" not in config
    config = _DEFAULTS | config
    for key in _SIZES:
        value = config.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(
                f"{place}: `{key}` must be an integer from 1 on. Received: "
                f"{value}"
            )
    activation = config["transformer-ffn-activation"]
    if activation not in _ACTIVATIONS:
        raise UserError(
            f"{place}: `transformer-ffn-activation` must be one of "
            f"{', '.join(_ACTIVATIONS)}. Received: {activation}"
        )
    before, after, embedding, top = (
        str(config[f"transformer-{key}"] or "").replace("d", "")
        for key in (
            "preprocess",
            "postprocess",
            "postprocess-emb",
            "postprocess-top",
        )
    )
    if (before, after) not in _NORMS:
        given = " and ".join(
            f"{key}={config[key]!r}"
            for key in ("transformer-preprocess", "transformer-postprocess")
        )
        raise UserError(
            f"{place}: a norm must follow each sub-layer ('' and 'dan') or be "
            f"before it ('n' and 'da'). Received: {given}"
        )
    for key, value, allowed in (
        ("transformer-postprocess-emb", embedding, ("",)),
        ("transformer-postprocess-top", top, ("", "n")),
    ):
        if value not in allowed:
            known = " or ".join(repr(one) for one in allowed)
            raise UserError(
                f"{place}: `{key}` must be {known} besides dropout ('d'). "
                f"Received: {config[key]!r}"
            )
    is_first, has_final = _NORMS[before, after], top == "n"
    if is_first and is_before_1_10:
        raise UserError(
            f"{place}: a model with norms before its sub-layers must come from "
            "Marian 1.10 or later, since earlier ones left keys and values "
            "without a norm. Received: a model without "
            "`transformer-postprocess-top`, of version "
            f"{config.get('version', 'unknown')}"
        )
    activations = dict(_ACTIVATIONS)
    scaled = _sigmoid_gelus(config, place)
    if scaled:
        activations["gelu"] = "silu"
    kind = decoder_kind(config, is_first, activations, place)
    return config | {
        "activation": activations[activation],
        "scaled_networks": scaled,
        "decoder_layer": kind,
        "normalize_first": is_first,
        "final_norm": None if has_final == is_first else has_final,
        "has_final_norm": has_final,
    }


def _sigmoid_gelus(config, place):
    """The networks in a block whose gelu is x sigmoid(1.702 x)."""
    found = [
        network
        for key, network in _NETWORKS.items()
        if config.get(key) == "gelu"
    ]
    version = str(config.get("version"))
    numbers = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version)
    if found and numbers is None:
        raise UserError(
            f"{place}: `version` must be that of Marian, such as v1.12.0, "
            "since gelu was another function before 1.12.3. Received: "
            f"{version}"
        )
    if found and tuple(map(int, numbers.groups())) >= _EXACT_GELU_SINCE:
        return []
    return found


def _read_decoder(file):
    """Returns what Marian wrote for its decoder, and the file it is in."""
    for name in (f"{file.name}.decoder.yml", "decoder.yml"):
        found = file.parent / name
        if found.is_file():
            content, _ = read_yaml(found)
            if isinstance(content, dict):
                return content | {"file": found}
    return {}


def _vocabulary_file(file, side, decoder, number, given):
    """The file of one side's vocabulary."""
    folder = file.parent
    remedy = f"Put {side}.spm beside it, or give it by --{side}-tokenizer"
    named = decoder.get("vocabs")
    if isinstance(named, list) and len(named) == 2:
        # The folder may have been moved since.
        name = Path(str(named[number]))
        places = [folder / name, folder / name.name]
        remedy = f"Put {name.name} beside it"
        if name.suffix not in _LISTS:
            remedy += f", or give it by --{side}-tokenizer"
            places += [] if given is None else [Path(given)]
    elif lists := sorted(
        [*folder.glob("*vocab.yml"), *folder.glob("*vocab.json")]
    ):
        places = lists
        if len(lists) > 1:
            listed = ", ".join(place.name for place in lists)
            raise UserError(
                f"{file}: its {side} vocabulary must be named where there are "
                f"several. Write `vocabs: [SOURCE, TARGET]` to "
                f"{folder / 'decoder.yml'}. Received: {listed}"
            )
    elif given is not None:
        places = [Path(given)]
    else:
        models = sorted(folder.glob("*.spm"))
        places = [folder / f"{side}.spm", *models[: len(models) == 1]]
    for place in places:
        if place.is_file():
            return place
    tried = ", ".join(map(str, dict.fromkeys(places)))
    raise UserError(
        f"{file}: its {side} vocabulary was not found. {remedy}. Looked for: "
        f"{tried}"
    )


def _tokenizer_file(folder, side, vocabulary_file, given):
    if given is not None:
        return Path(given)
    if vocabulary_file.suffix not in _LISTS:
        return vocabulary_file
    file = folder / f"{side}.spm"
    if not file.is_file():
        raise UserError(
            f"{vocabulary_file}: does not cut texts into pieces. Put "
            f"{side}.spm beside it, or give the SentencePiece model by "
            f"--{side}-tokenizer."
        )
    return file


def _embedding(tensors, side):
    name = {"source": "encoder_Wemb", "target": "decoder_Wemb"}[side]
    return tensors.matrix("Wemb" if tensors.has("Wemb") else name)


def _rows(tensors, side):
    return len(_embedding(tensors, side))


def _model(tensors, config, vocabularies):
    """Returns the weights by path, and the arguments of `Transformer`."""
    output = None
    if not (config["tied-embeddings"] or config["tied-embeddings-all"]):
        name = "decoder_ff_logit_out_W"
        output = (  # once it was not transposed
            tensors.matrix(name).T
            if tensors.has(name)
            else tensors.matrix(f"{name}t")
        )
    bias = tensors.take_if_there("decoder_ff_logit_out_b")
    source = _embedding(tensors, "source")
    weights, arguments = embedding_weights(
        source,
        _embedding(tensors, "target"),
        output,
        None if bias is None else bias.reshape(-1),
        tuple(vocabularies),
    )
    for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth")):
        arguments[f"num_{side}_layers"] = config[depth]
        for number in range(1, config[depth] + 1):
            weights |= _block(tensors, side, number, config)
        if config["has_final_norm"]:
            weights |= _norm(tensors, f"{side}_top", f"{side}_norm")
    arguments |= decoder_layer(tensors, **config["decoder_layer"])
    return weights, arguments | dict(
        hidden_dim=source.shape[1],
        intermediate_dim=tensors.matrix("encoder_l1_ffn_W1").shape[1],
        num_heads=config["transformer-heads"],
        activation=config["activation"],
        layer_norm_epsilon=_EPSILON,
        normalize_first=config["normalize_first"],
        final_norm=config["final_norm"],
        key_bias=True,
    )


def _block(tensors, side, number, config):
    theirs, ours = f"{side}_l{number}", f"{side}_block_{number}"
    suffix = "_pre" if config["normalize_first"] else ""
    attentions = {"attention": "self"}
    kind = config["decoder_layer"]["kind"]
    found = {}
    if side == "decoder":
        attentions["cross_attention"] = "context"
        if kind != SELF_ATTENTION:
            del attentions["attention"]
            found, norm = decoder_layer_weights(
                tensors,
                kind,
                theirs,
                f"{ours}/attention",
                config["normalize_first"],
            )
            found |= _norm(
                tensors, norm, f"{ours}/attention_residual/layer_norm", suffix
            )
    for name, attention in attentions.items():
        for part in ("query", "key", "value", "output"):
            found |= _dense(
                tensors,
                f"{theirs}_{attention}",
                part[0],
                f"{ours}/{name}/{part}",
            )
        found |= _norm(
            tensors,
            f"{theirs}_{attention}_Wo",
            f"{ours}/{name}_residual/layer_norm",
            suffix,
        )
    for place, part in (("1", "intermediate"), ("2", "output")):
        found |= _dense(
            tensors, f"{theirs}_ffn", place, f"{ours}/feed_forward/{part}"
        )
    for network in config["scaled_networks"]:
        if f"{ours}/{network}/intermediate/kernel" in found:
            as_silu(found, f"{ours}/{network}")
    return found | _norm(
        tensors,
        f"{theirs}_ffn_ffn",
        f"{ours}/feed_forward_residual/layer_norm",
        suffix,
    )


def _dense(tensors, theirs, part, ours):
    return {
        f"{ours}/kernel": tensors.matrix(f"{theirs}_W{part}"),
        f"{ours}/bias": tensors.take(f"{theirs}_b{part}").reshape(-1),
    }


def _norm(tensors, theirs, ours, suffix=""):
    names = {"gamma": "scale", "beta": "bias"}
    return {
        f"{ours}/{name}": tensors.take(f"{theirs}_ln_{part}{suffix}").reshape(
            -1
        )
        for name, part in names.items()
    }


def _decoding(decoder) -> dict[str, Any]:
    """Returns the options of the search that `decoder.yml` asks for."""
    search = _SEARCH | decoder
    numbers = {}
    for key in ("beam-size", "normalize", "word-penalty", _FACTOR):
        value = search.get(key, 0)
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise UserError(
                f"{search['file']}: `{key}` must be a number. Received: {value}"
            )
        numbers[key] = value
    if numbers["word-penalty"]:
        raise UserError(
            f"{search['file']}: `word-penalty` must be 0, since the search of "
            f"this package has none. Received: {numbers['word-penalty']}"
        )
    if numbers[_FACTOR] <= 0:
        raise UserError(
            f"{search['file']}: `{_FACTOR}` must be above 0. Received: "
            f"{numbers[_FACTOR]}"
        )
    return {
        "num_beams": int(numbers["beam-size"]),
        # Marian divides by length ** normalize.
        "length_penalty": float(numbers["normalize"]),
        "length_offset": 0.0,
        "allow_unknown": bool(search["allow-unk"]),
        # Marian breaks off at as many tokens, or at the next integer.
        "max_length_ratio": float(numbers[_FACTOR]),
        "max_extra_tokens": 0,
    }
