"""One word for one thing, in every constructor and every call."""

import ast

import pytest
from package_tree import functions, relative, source_files

# Never the right word, in any function.
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
# Too vague for a constructor or a call, fine elsewhere.
BANNED_IN_LAYERS = BANNED | {
    "bias": "attention_mask or use_bias",
    "causal": "use_causal_mask",
    "depth": "num_encoder_layers",
    "dim": "hidden_dim",
    "eps": "layer_norm_epsilon",
    "heads": "num_heads",
    "i": "cache_index",
    "mask": "padding_mask",
    "p": "dropout",
    "size": "hidden_dim",
    "states": "layer_states",
    "step": "cache_index",
}
LAYER_ROOMS = ("keras_deepnmt/layers/", "keras_deepnmt/models/")


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=relative(p)) for p in source_files()]
)
def test_arguments_use_the_glossary(path):
    in_layers = relative(path).startswith(LAYER_ROOMS)
    wrong = []
    for name, node in functions(path):
        last = name.split(".")[-1]
        strict = in_layers and last in ("__init__", "call")
        banned = BANNED_IN_LAYERS if strict else BANNED
        for argument in _argument_names(node):
            if argument in banned:
                wrong.append(f"{name}({argument}): {banned[argument]}")
            if argument.startswith(("src_", "tgt_", "trg_")):
                wrong.append(f"{name}({argument}): source_… or target_…")
    assert not wrong


def _argument_names(node):
    arguments: ast.arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument.arg for argument in every]
