"""Writes the weights of a plain Transformer for other translation engines.

The folder gets three files: `model.json` has the sizes, `model.npz` the arrays
under the names of this module, and `model.weights.h5` is Keras' own file. Dense
kernels are `(inputs, outputs)`.
"""

import json

SUBLAYERS = {
    "encoder": ("attention", "feed_forward"),
    "decoder": ("attention", "cross_attention", "feed_forward"),
}
ATTENTION = ("query", "key", "value", "output")
FEED_FORWARD = {"intermediate": "intermediate", "output": "output_dense"}
# Arguments of `Transformer` that must have these values.
PLAIN = {
    "activation": "relu",
    "position_encoding": "sinusoidal",
    "share_embeddings": True,
    "source_embedding_layer": None,
    "target_embedding_layer": None,
    "encoder_self_attention": None,
    "decoder_self_attention": None,
    "encoder_aggregation": None,
    "decoder_aggregation": None,
    "encoder_fusion": None,
    "output_fusion": None,
}
SIZES = (
    "hidden_dim",
    "intermediate_dim",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "layer_norm_epsilon",
    "normalize_first",
)
# Longest source or translation that the other engines get positions for.
MAX_LENGTH = 512


def plain_sizes(config):
    """Returns the sizes in the configuration of a plain Transformer.

    Raises a `ValueError` if another engine could not compute the model.
    """
    for name, value in PLAIN.items():
        # A model without these arguments is not a Transformer.
        received = config.get(name, "none: not a Transformer")
        if received != value:
            raise ValueError(
                "Other engines compute only a plain Transformer with one "
                f"matrix for all embeddings: `{name}` must be {value!r}. "
                f"Received: {received!r}. Pass another --run."
            )
    return {
        "vocabulary_size": config["target_vocabulary_size"],
        **{name: config[name] for name in SIZES},
    }


def transformer_arrays(model):
    """Returns the arrays of a plain Transformer by name."""
    import numpy as np

    width = model.get_config()["hidden_dim"]
    zeros = np.zeros((1, MAX_LENGTH, width), "float32")
    arrays = {
        "embedding": np.asarray(model.target_embedding.embeddings),
        "positions": np.asarray(model.position_encoding(zeros))[0],
    }
    for side, sublayers in SUBLAYERS.items():
        for number, block in enumerate(getattr(model, f"{side}_blocks")):
            for sublayer in sublayers:
                name = f"{side}.{number}.{sublayer}"
                arrays |= _sublayer_arrays(block, sublayer, name)
        norm = getattr(model, f"{side}_norm")
        if norm is not None:
            arrays |= _norm_arrays(norm, side)
    return arrays


def write_model(model, folder):
    """Writes the three files of a plain Transformer into a folder."""
    import numpy as np

    sizes = plain_sizes(model.get_config())
    (folder / "model.json").write_text(json.dumps(sizes))
    np.savez(folder / "model.npz", **transformer_arrays(model))
    model.save_weights(folder / "model.weights.h5")


def _sublayer_arrays(block, sublayer, name):
    layer = getattr(block, sublayer)
    residual = getattr(block, f"{sublayer}_residual")
    if sublayer == "feed_forward":
        parts = {n: getattr(layer, x) for n, x in FEED_FORWARD.items()}
    else:
        parts = {n: getattr(layer, f"{n}_projection") for n in ATTENTION}
    arrays = _norm_arrays(residual.layer_norm, name)
    for part, dense in parts.items():
        arrays |= _dense_arrays(dense, f"{name}.{part}")
    return arrays


def _dense_arrays(dense, name):
    import numpy as np

    kernel = np.asarray(dense.kernel)
    # Keys have no bias; other engines always have one.
    bias = np.zeros(kernel.shape[1], "float32")
    if dense.use_bias:
        bias = np.asarray(dense.bias)
    return {f"{name}.kernel": kernel, f"{name}.bias": bias}


def _norm_arrays(norm, name):
    import numpy as np

    return {
        f"{name}.norm.gamma": np.asarray(norm.gamma),
        f"{name}.norm.beta": np.asarray(norm.beta),
    }
