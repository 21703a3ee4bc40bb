"""Writes the weights of a plain Transformer for other translation engines.

The folder gets three files: `model.json` has the sizes, `model.npz` the arrays
under the names of this module, and `model.weights.h5` is Keras' own file. Dense
kernels are `(inputs, outputs)`.
"""

import json

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
    """Returns the arrays of a plain Transformer by name.

    They are those of the package, with one `embedding` for all three tables and
    one table of `positions` for both sides.
    """
    from keras_deepnmt.exchange.plain_transformer import transformer_arrays

    arrays = transformer_arrays(model)
    for name in ("source_embedding", "output"):
        del arrays[name]
    arrays["embedding"] = arrays.pop("target_embedding")
    # Sines and cosines, which are the same on both sides.
    del arrays["decoder.positions"]
    arrays["positions"] = arrays.pop("encoder.positions")[:MAX_LENGTH]
    return arrays


def write_model(model, folder):
    """Writes the three files of a plain Transformer into a folder."""
    import numpy as np

    sizes = plain_sizes(model.get_config())
    (folder / "model.json").write_text(json.dumps(sizes))
    np.savez(folder / "model.npz", **transformer_arrays(model))
    model.save_weights(folder / "model.weights.h5")
