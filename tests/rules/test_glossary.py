"""One word for one thing, in every constructor and every call."""

import ast

from package_tree import (
    functions,
    package_of,
    refuse,
    relative,
    source_files,
)

# Wrong in every function: the word and the right one.
BANNED = {
    "all_layers": "layer_states",
    "attention_heads": "num_heads",
    "attn_drop": "attention_dropout",
    "attn_mask": "attention_mask",
    "d_ff": "intermediate_dim",
    "d_model": "hidden_dim",
    "dropout_rate": "dropout",
    "enc_out": "memory",
    "encoder_hidden": "memory",
    "encoder_token_ids": "source_ids",
    "ff_size": "intermediate_dim",
    "filter_size": "intermediate_dim",
    "hidden_size": "hidden_dim",
    "hiddens": "layer_states",
    "mlp_dim": "intermediate_dim",
    "model_size": "hidden_dim",
    "n_head": "num_heads",
    "n_heads": "num_heads",
    "n_layers": "num_encoder_layers",
    "need_weights": "return_attention_scores",
    "pre_norm": "normalize_first",
    "src": "source",
    "src_mask": "padding_mask",
    "tgt": "target",
    "trg": "target",
    "vocab": "vocabulary",
    "vocab_size": "vocabulary_size",
}
# Too vague for the constructor or the call of a layer or model. Not `mask`: to
# an argument of this name Keras passes the mask of the only tensor.
BANNED_IN_LAYERS = BANNED | {
    "bias": "attention_mask or use_bias",
    "causal": "use_causal_mask",
    "depth": "num_encoder_layers",
    "dim": "hidden_dim",
    "eps": "layer_norm_epsilon",
    "heads": "num_heads",
    "i": "cache_index",
    "p": "dropout",
    "size": "hidden_dim",
    "states": "layer_states",
    "step": "cache_index",
}
LAYER_PACKAGES = {"layers", "models"}


def test_arguments_use_the_glossary():
    offenders = []
    for path in source_files():
        in_layers = package_of(path) in LAYER_PACKAGES
        for name, node in functions(path):
            is_strict = in_layers and node.name in ("__init__", "call")
            banned = BANNED_IN_LAYERS if is_strict else BANNED
            for argument in _argument_names(node):
                right = banned.get(argument)
                if argument.startswith(("src_", "tgt_", "trg_")):
                    right = "source_… or target_…"
                if right:
                    offenders.append(
                        f"{relative(path)}:{node.lineno}: {name}({argument}): "
                        f"use {right}"
                    )
    refuse(offenders, "Use the one word that all arguments have for it.")


def _argument_names(node):
    arguments: ast.arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument.arg for argument in every]
