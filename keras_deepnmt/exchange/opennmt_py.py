"""Transformers of OpenNMT-py 3: a checkpoint `.pt`, in which all is."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_deepnmt.data.merge_codes import ALL_SPACES
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.block_names import BlockNames
from keras_deepnmt.exchange.config_values import positive_integer
from keras_deepnmt.exchange.embedding_weights import embedding_weights
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.opennmt_names import (
    PROJECTIONS,
    check_transforms,
    imported_model,
    read_sides,
    read_tokenizers,
)
from keras_deepnmt.exchange.tensor_files import read_pickle, state_dict

FORMAT = "opennmt-py"
# Options, and the values that this package can express. The first one is the
# default of OpenNMT-py 3.5.
_FIXED = {
    "model_task": ("seq2seq",),
    "encoder_type": ("transformer",),
    "decoder_type": ("transformer",),
    "position_encoding": (True,),
    "position_encoding_type": ("SinusoidalInterleaved", "SinusoidalConcat"),
    "max_relative_positions": (0,),
    "self_attn_type": ("scaled-dot", "scaled-dot-flash"),
    "pos_ffn_activation_fn": ("relu", "gelu"),
    "layer_norm": ("standard",),
    "parallel_residual": (False,),
    "num_kv": (0,),
    "num_experts": (0,),
    "sliding_window": (0,),
    "copy_attn": (False,),
    "n_src_feats": (0,),
    "generator_function": ("softmax",),
    "lora_layers": ([],),
    "lora_embedding": (False,),
    "quant_layers": ([],),
}
_FEED_FORWARD = {
    "intermediate": "feed_forward.w_1",
    "output": "feed_forward.w_2",
}
_BLOCKS = {
    "encoder": BlockNames(
        {"attention": "self_attn"},
        PROJECTIONS,
        _FEED_FORWARD,
        {"attention": "layer_norm", "feed_forward": "feed_forward.layer_norm"},
    ),
    "decoder": BlockNames(
        {"attention": "self_attn", "cross_attention": "context_attn"},
        PROJECTIONS,
        _FEED_FORWARD,
        {
            "attention": "layer_norm_1",
            "cross_attention": "layer_norm_2",
            "feed_forward": "feed_forward.layer_norm",
        },
    ),
}
_STACKS = {
    "encoder": "encoder.transformer",
    "decoder": "decoder.transformer_layers",
}
_EMBEDDINGS = "embeddings.make_embedding"


def is_opennmt_py(path: Path) -> bool:
    """Whether a file may be of this format, which its name alone tells."""
    return path.suffix == ".pt" and path.is_file()


def load_opennmt_py(
    path: str | Path,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> ImportedModel:
    """Reads a Transformer that OpenNMT-py 3 trained.

    Its logits and ids are those of OpenNMT-py, at the ids of this package. The
    encoder does not read the end of a source.

    Args:
        path: the checkpoint. The SentencePiece models, or codes of subword-nmt,
            that it names must be in its folder.
        source_tokenizer: file in place of `src_subword_model`.
        target_tokenizer: that of the target side.

    Returns:
        The model and its tokenizers.

    Raises:
        UserError: if the file is damaged, holds more than plain values, or is
            of a model that this package does not have.

    Example:
    >>> from keras_deepnmt.exchange import load_opennmt_py
    >>> load_opennmt_py("model_step_50000.pt").arguments["encode_end"]
    False
    """
    file = Path(path)
    if not file.is_file():
        raise UserError(f"{file}: no such file.")
    saved = read_pickle(file, [argparse.Namespace])
    options, transform = _options(saved, file)
    vocabularies, protos = read_sides(
        file,
        saved["vocab"],
        {},
        read_tokenizers(
            transform,
            options,
            bool(options.get("share_vocab")),
            file,
            (source_tokenizer, target_tokenizer),
            ALL_SPACES,
        ),
    )
    generator = state_dict(saved.get("generator"), file)
    tensors = NamedTensors(
        {
            **state_dict(saved["model"], file),
            **{f"generator.{name}": x for name, x in generator.items()},
        },
        file,
    )
    arguments = _arguments(options, file)
    weights, sizes = embedding_weights(
        tensors.matrix(f"encoder.{_EMBEDDINGS}.emb_luts.0.weight"),
        tensors.matrix(f"decoder.{_EMBEDDINGS}.emb_luts.0.weight"),
        tensors.matrix("generator.weight"),
        tensors.take("generator.bias"),
        vocabularies,
    )
    has_bias = bool(options.get("add_qkvbias", False))
    for side, blocks in _BLOCKS.items():
        for number in range(arguments[f"num_{side}_layers"]):
            weights |= blocks.weights(
                tensors,
                f"{_STACKS[side]}.{number}",
                f"{side}_block_{number + 1}",
                qkv_bias=has_bias,
                output_bias=has_bias,
                feed_forward_bias=bool(options.get("add_ffnbias", True)),
            )
        weights |= tensors.norm(f"{side}.layer_norm", f"{side}_norm")
        tensors.ignore(f"{side}.{_EMBEDDINGS}.pe.pe")
    tensors.refuse_others()
    kind = options.get("position_encoding_type", "SinusoidalInterleaved")
    return imported_model(
        file,
        FORMAT,
        {**arguments, **sizes},
        weights,
        protos,
        kind == "SinusoidalInterleaved",
    )


def _options(saved, file) -> tuple[dict[str, Any], str]:
    """Returns the options of the training, and the transform that cuts texts.

    They must be those of the model.
    """
    for key in ("model", "vocab", "opt"):
        if not isinstance(saved, Mapping) or key not in saved:
            raise UserError(
                f"{file}: must be a checkpoint of OpenNMT-py 3, and have the "
                f"key {key!r}. Weights in safetensors beside it, and "
                "checkpoints of earlier versions, cannot be imported."
            )
    options = saved["opt"]
    if not isinstance(options, argparse.Namespace):
        raise UserError(f"{file}: `opt` must be options of OpenNMT-py.")
    if not isinstance(saved["vocab"], Mapping):
        raise UserError(
            f"{file}: `vocab` must hold lists of pieces. Checkpoints of "
            "OpenNMT-py 2 cannot be imported."
        )
    options = vars(options)
    for key, allowed in _FIXED.items():
        value = options.get(key, allowed[0])
        if value not in allowed:
            listed = " or ".join(map(str, allowed))
            raise UserError(
                f"{file}: `{key}` must be {listed}, since others cannot be "
                f"imported. Received: {value}"
            )
    transform = check_transforms(options.get("transforms") or [], file)
    return options, transform


def _arguments(options, file) -> dict[str, Any]:
    def size(key):
        return positive_integer(options.get(key), key, file)

    def first(key):
        value = options.get(key, 0.1)
        return value[0] if isinstance(value, list) else value

    return dict(
        intermediate_dim=size("transformer_ff"),
        num_heads=size("heads"),
        num_encoder_layers=size("enc_layers"),
        num_decoder_layers=size("dec_layers"),
        dropout=first("dropout"),
        attention_dropout=first("attention_dropout"),
        activation=options.get("pos_ffn_activation_fn", "relu"),
        layer_norm_epsilon=options.get("norm_eps", 1e-6),
        normalize_first=True,
        key_bias=True,
        encode_end=False,
    )
