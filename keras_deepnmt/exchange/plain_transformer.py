"""The sizes and weights of a plain Transformer, for other engines.

Kernels are `(inputs, outputs)`. A block's arrays are named
`SIDE.NUMBER.SUBLAYER.PART`, such as `decoder.0.cross_attention.key.kernel`.
"""

from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.models import Transformer
from keras_deepnmt.models.quantized_saving import quantization_modes
from keras_deepnmt.models.transformer_layers import (
    SLOTS,
    has_final_norm,
    relative_position,
)

# Slots whose layers do nothing in translation.
_OF_TRAINING = ("layer_diversity", "layer_drop")
_SUBLAYERS = {
    "encoder": ("attention", "feed_forward"),
    "decoder": ("attention", "cross_attention", "feed_forward"),
}
_ATTENTION = ("query", "key", "value", "output")
_FEED_FORWARD = {"intermediate": "intermediate", "output": "output_dense"}


def check_plain(model: Any, engine: str) -> None:
    """Refuses a model that has more than a plain Transformer.

    That may be another class, quantized weights, a layer in a slot that is not
    only for training, or other positions or norms. `engine` is the name of what
    is to compute the model, for the error.
    """
    rule = f"{engine} computes only plain Transformers"
    if type(model) is not Transformer:
        raise UserError(f"{rule}. Received: {type(model).__name__}")
    if modes := quantization_modes(model):
        raise UserError(
            f"{rule} whose weights are not quantized. Received: "
            f"{' and '.join(modes)} weights. Export the model as it was before "
            "`quantize`."
        )
    config = model.get_config()
    for slot in SLOTS:
        if slot in _OF_TRAINING or config[slot] is None:
            continue
        name = config[slot]["class_name"].rpartition(">")[2]
        raise UserError(
            f"{rule}: it has nothing that computes {name} in `{slot}`. Train "
            "a model without this layer, or export for TensorFlow Serving."
        )
    if has_final_norm(config) != config["normalize_first"]:
        raise UserError(
            f"{rule} with a norm after each stack in pre-norm models alone. "
            f"Received: normalize_first={config['normalize_first']}, "
            f"final_norm={config['final_norm']}"
        )
    if config["position_encoding"] is None:
        raise UserError(f"{rule} with positions: `position_encoding` is None.")
    if config := relative_position(config):
        name = config["class_name"].rpartition(">")[2]
        raise UserError(
            f"{rule} with positions that are added to the embeddings. "
            f"Received: {name} in `position_encoding`. Train a model with "
            '"sinusoidal", or export for TensorFlow Serving or ONNX Runtime.'
        )


def transformer_arrays(model: Transformer) -> dict[str, np.ndarray]:
    """Returns the arrays of a plain Transformer by name.

    Besides those of the blocks they are `source_embedding`, `target_embedding`
    and `output` `(V, D)`, `output_bias` `(V,)` if there is one,
    `encoder.positions` and `decoder.positions` `(model.max_length, D)`, and
    `encoder.norm.gamma` and the like in a model with a norm after each stack.
    `check_plain` must have accepted the model.
    """
    target = model.target_embedding
    output = target.embeddings
    if not target.tie_weights:
        output = np.asarray(target.reverse_embeddings).T
    width = model.get_config()["hidden_dim"]
    zeros = np.zeros((1, model.max_length, width), "float32")
    arrays = {
        "source_embedding": np.asarray(model.source_embedding.embeddings),
        "target_embedding": np.asarray(target.embeddings),
        "output": np.asarray(output),
        "encoder.positions": np.asarray(model.position_encoding(zeros))[0],
        "decoder.positions": np.asarray(model.target_position_encoding(zeros))[
            0
        ],
    }
    if model.output_bias is not None:
        arrays["output_bias"] = np.asarray(model.output_bias.bias)
    for side, sublayers in _SUBLAYERS.items():
        for number, block in enumerate(getattr(model, f"{side}_blocks")):
            for sublayer in sublayers:
                name = f"{side}.{number}.{sublayer}"
                arrays |= _sublayer_arrays(block, sublayer, name)
        norm = getattr(model, f"{side}_norm")
        if norm is not None:
            arrays |= _norm_arrays(norm, side)
    return arrays


def _sublayer_arrays(block, sublayer, name):
    layer = getattr(block, sublayer)
    residual = getattr(block, f"{sublayer}_residual")
    if sublayer == "feed_forward":
        parts = {n: getattr(layer, x) for n, x in _FEED_FORWARD.items()}
    else:
        parts = {n: getattr(layer, f"{n}_projection") for n in _ATTENTION}
    arrays = _norm_arrays(residual.layer_norm, name)
    for part, dense in parts.items():
        arrays |= _dense_arrays(dense, f"{name}.{part}")
    return arrays


def _dense_arrays(dense, name):
    kernel = np.asarray(dense.kernel)
    # Keys have no bias; other engines always have one.
    bias = np.zeros(kernel.shape[1], "float32")
    if dense.use_bias:
        bias = np.asarray(dense.bias)
    return {f"{name}.kernel": kernel, f"{name}.bias": bias}


def _norm_arrays(norm, name):
    return {
        f"{name}.norm.gamma": np.asarray(norm.gamma),
        f"{name}.norm.beta": np.asarray(norm.beta),
    }
