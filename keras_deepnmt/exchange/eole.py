"""Transformers of eole: a folder with `config.json`, `vocab.json` and weights.

`config.json` has only the values that differ from eole's defaults.
"""

from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.block_names import BlockNames
from keras_deepnmt.exchange.config_values import positive_integer, section
from keras_deepnmt.exchange.embedding_weights import embedding_weights
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.opennmt_names import (
    PROJECTIONS,
    check_transforms,
    imported_model,
    read_sides,
    read_tokenizers,
    text_transforms,
)
from keras_deepnmt.exchange.tensor_files import read_tensor_file
from keras_deepnmt.json_files import read_json

FORMAT = "eole"
_WEIGHTS = "model.00.safetensors"
_MORE_WEIGHTS = "model.01.safetensors"
# Values of a side that this package can express, the default of eole 0.6 first.
_FIXED = {
    "layer_norm": ("standard",),
    "mlp_activation_fn": ("relu", "gelu"),
    "parallel_residual": (False,),
    "ffn_layernorm": (False,),
    "query_norm": (False,),
    "key_norm": (False,),
    "value_norm": (False,),
    "q_gating": (False,),
    "heads_kv": (None,),
    "head_dim": (None,),
    "attn_scaling": (None,),
    "sliding_window": (0,),
    "num_experts": (0,),
    "encoder_layer_style": ("standard",),
    "final_encoder_layer_norm": (True,),
    "layer_types": (None,),
}
# eole strips the bytes of a line, so other spaces of Unicode stay.
_STRIPPED = "\t\n\v\f\r "
_DROPOUT = {"dropout": 0.3, "attention_dropout": 0.1}
_POSITIONS = ("SinusoidalInterleaved", "SinusoidalConcat")
_FEED_FORWARD = {"intermediate": "mlp.gate_up_proj", "output": "mlp.down_proj"}
_BLOCKS = {
    "encoder": BlockNames(
        {"attention": "self_attn"},
        PROJECTIONS,
        _FEED_FORWARD,
        {
            "attention": "input_layernorm",
            "feed_forward": "post_attention_layernorm",
        },
    ),
    "decoder": BlockNames(
        {"attention": "self_attn", "cross_attention": "context_attn"},
        PROJECTIONS,
        _FEED_FORWARD,
        {
            "attention": "input_layernorm",
            "cross_attention": "precontext_layernorm",
            "feed_forward": "post_attention_layernorm",
        },
    ),
}


def is_eole(folder: Path) -> bool:
    """Whether a folder is of this format."""
    file = folder / "config.json"
    if not file.is_file() or not (folder / "vocab.json").is_file():
        return False
    config = read_json(file)
    return isinstance(config, dict) and isinstance(config.get("model"), dict)


def load_eole(
    path: str | Path,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> ImportedModel:
    """Reads a Transformer that eole trained.

    Its logits and ids are those of eole, at the ids of this package. The
    encoder does not read the end of a source.

    Args:
        path: the folder.
        source_tokenizer: SentencePiece model, or codes of subword-nmt, in
            place of the file that `config.json` names.
        target_tokenizer: that of the target side.

    Returns:
        The model and its tokenizers.

    Raises:
        UserError: if a file is missing or damaged, the vocabularies do not fit
            the weights, or the configuration asks for what this package does
            not have.

    Example:
    >>> from keras_deepnmt.exchange import load_eole
    >>> load_eole("model").arguments["encode_end"]
    False
    """
    folder = Path(path)
    config = _read(folder / "config.json")
    if not isinstance(config.get("model"), dict):
        raise UserError(f"{folder / 'config.json'}: lacks model.")
    arguments, order = _arguments(config["model"], folder / "config.json")
    file = folder / "config.json"
    arguments |= _dropout(section(config, "training", "training", file), file)
    file = folder / "vocab.json"
    vocabulary = _read(file)
    vocabularies, protos = read_sides(
        file,
        vocabulary,
        section(vocabulary, "specials", "specials", file),
        _tokenizers(config, folder, source_tokenizer, target_tokenizer),
    )
    if (folder / _MORE_WEIGHTS).is_file():
        raise UserError(
            f"{folder}: must have its weights in {_WEIGHTS} alone, since more "
            f"files cannot be imported. Received: {_MORE_WEIGHTS}"
        )
    tensors = NamedTensors(read_tensor_file(folder / _WEIGHTS), folder)
    weights, sizes = _weights(tensors, arguments, vocabularies)
    return imported_model(
        folder,
        FORMAT,
        {**arguments, **sizes},
        weights,
        protos,
        order == "SinusoidalInterleaved",
    )


def _read(file) -> dict[str, Any]:
    try:
        return read_json(file, dict[str, Any])
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error


def _arguments(model, file):
    """Returns arguments of `Transformer`, and the order of the positions."""

    def take(side, key, default=None):
        own = model.get(side)
        value = own.get(key) if isinstance(own, dict) else None
        return model.get(key, default) if value is None else value

    def refuse(key, allowed, value):
        if value not in allowed:
            listed = " or ".join(map(str, allowed))
            raise UserError(
                f"{file}: `{key}` must be {listed}, since others cannot be "
                f"imported. Received: {value}"
            )

    def equal(key, default=None):
        values = [take(side, key, default) for side in ("encoder", "decoder")]
        if values[0] != values[1]:
            raise UserError(
                f"{file}: `model.decoder.{key}` must be that of the encoder, "
                f"{values[0]}. Received: {values[1]}"
            )
        return values[0]

    def size(side, key, default):
        value = take(side, key, default)
        name = f"model.{side}.{key}"
        return positive_integer(value, name, file)

    refuse("model.architecture", ("transformer",), model.get("architecture"))
    for side in ("encoder", "decoder"):
        own = section(model, side, f"model.{side}", file)
        kind = f"{side}_type"
        value = own.get(kind, "transformer")
        refuse(f"model.{side}.{kind}", ("transformer",), value)
        for key, allowed in _FIXED.items():
            refuse(f"model.{side}.{key}", allowed, take(side, key, allowed[0]))
    embeddings = section(model, "embeddings", "model.embeddings", file)
    key = "position_encoding_type"
    order = equal(key, _POSITIONS[0])
    order = embeddings.get(key, order)  # where null means none
    refuse("model.embeddings.position_encoding_type", _POSITIONS, order)
    equal("transformer_ff", 2048)
    equal("heads", 8)
    return {
        "intermediate_dim": size("encoder", "transformer_ff", 2048),
        "num_heads": size("encoder", "heads", 8),
        **{
            f"num_{side}_layers": size(
                side, "layers", model.get(f"{side[:3]}_layers", 2)
            )
            for side in ("encoder", "decoder")
        },
        "activation": equal("mlp_activation_fn", "relu"),
        "layer_norm_epsilon": equal("norm_eps", 1e-5),
        "normalize_first": True,
        "key_bias": True,
        "encode_end": False,
    }, order


def _dropout(training, file):
    """Returns those of the training, for a further one."""
    found = {}
    for key, default in _DROPOUT.items():
        value = training.get(key, default)
        found[key] = value[0] if isinstance(value, list) and value else value
        if isinstance(value, bool) or not isinstance(found[key], int | float):
            raise UserError(
                f"{file}: `training.{key}` must have a number. Received: "
                f"{value}"
            )
    return found


def _tokenizers(config, folder, source, target):
    """Returns how the texts of both sides are cut, for `read_sides`."""
    file = folder / "config.json"
    names, transform = config.get("transforms") or [], "sentencepiece"
    # Without one, files that are given are SentencePiece models.
    if text_transforms(names) or source is None or target is None:
        transform = check_transforms(names, file)
    key = "transforms_configs"
    options = section(config, key, key, file)
    return read_tokenizers(
        transform,
        section(options, transform, f"{key}.{transform}", file),
        bool(config.get("share_vocab")),
        file,
        (source, target),
        _STRIPPED,
    )


def _weights(tensors, arguments, vocabularies):
    source = tensors.matrix("src_emb.embeddings.weight")
    # Matrices that are shared are written once.
    target = tensors.take_if_there("tgt_emb.embeddings.weight")
    target = source if target is None else target
    weights, sizes = embedding_weights(
        source,
        target,
        tensors.take_if_there("generator.weight"),
        tensors.take_if_there("generator.bias"),
        vocabularies,
    )
    for side, blocks in _BLOCKS.items():
        for number in range(arguments[f"num_{side}_layers"]):
            theirs = f"{side}.transformer_layers.{number}"
            # Which of them have a bias depends on eole's version.
            biases = {
                name: tensors.has(f"{theirs}.{layer}.bias")
                for name, layer in (
                    ("qkv_bias", "self_attn.linear_query"),
                    ("output_bias", "self_attn.final_linear"),
                    ("feed_forward_bias", "mlp.down_proj"),
                )
            }
            weights |= blocks.weights(
                tensors, theirs, f"{side}_block_{number + 1}", **biases
            )
            scalar = tensors.take_if_there(f"{theirs}.layer_scalar")
            if scalar is not None and (scalar != 1.0).any():
                raise UserError(
                    f"{tensors.origin}: {theirs}.layer_scalar must be 1, since "
                    f"others cannot be imported. Received: {scalar}"
                )
        weights |= tensors.norm(f"{side}.layer_norm", f"{side}_norm")
    tensors.ignore("src_emb.pe.pe", "tgt_emb.pe.pe")
    tensors.refuse_others()
    return weights, sizes
