"""Creates the named layers of a Transformer from its arguments."""

import keras

from keras_deepnmt.layers.argument_checks import (
    check_num_layers,
    check_probability,
)
from keras_deepnmt.layers.cloning import (
    clone_prototype,
    prototype_config,
    prototype_of,
)
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.layer_diversity import LayerDiversity
from keras_deepnmt.layers.layer_drop import LayerDrop
from keras_deepnmt.layers.output_bias import OutputBias
from keras_deepnmt.layers.sinusoidal_position_encoding import (
    SinusoidalPositionEncoding,
)
from keras_deepnmt.layers.transformer_decoder_block import (
    TransformerDecoderBlock,
)
from keras_deepnmt.layers.transformer_encoder_block import (
    TransformerEncoderBlock,
)
from keras_deepnmt.models.slot_layers import POSITION_LAYERS, slot_config
from keras_deepnmt.models.slots import clone_slot
from keras_deepnmt.models.stack_slots import self_attention_at

SLOTS = (
    "source_embedding_layer",
    "target_embedding_layer",
    "encoder_self_attention",
    "decoder_self_attention",
    "decoder_cross_attention",
    "encoder_aggregation",
    "decoder_aggregation",
    "encoder_fusion",
    "output_fusion",
    "layer_diversity",
    "residual_connection",
    "layer_drop",
)
# Slots that may hold the first argument of this layer.
_OF_NUMBERS = {"layer_diversity": LayerDiversity, "layer_drop": LayerDrop}
SIZES = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "hidden_dim",
    "intermediate_dim",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "max_length",
)


def check_arguments(arguments):
    """Raises a `ValueError` for invalid arguments of `models.Transformer`."""
    check_num_layers(arguments)
    check_probability("dropout", arguments["dropout"])
    for name in SIZES:
        if arguments[name] < 1:
            raise ValueError(
                f"`{name}` must be at least 1. "
                f"Received: {name}={arguments[name]}."
            )
    sizes = [
        arguments[f"{side}_vocabulary_size"] for side in ("source", "target")
    ]
    if arguments["share_embeddings"] and sizes[0] != sizes[1]:
        raise ValueError(
            "`share_embeddings` needs equal vocabulary sizes. Received: "
            f"source_vocabulary_size={sizes[0]}, "
            f"target_vocabulary_size={sizes[1]}. "
            "Train a joint tokenizer, or pass share_embeddings=False."
        )


def slot_configs(arguments):
    """Maps each slot to the configuration of its layer, or `None`.

    A number for `layer_diversity` becomes `LayerDiversity` with that weight,
    and one for `layer_drop` a `LayerDrop` with that probability.
    `position_encoding` is no slot: other layers are not tried there.
    """
    for slot, layer in _OF_NUMBERS.items():
        if isinstance(arguments[slot], int | float):
            arguments = {**arguments, slot: layer(arguments[slot])}
    configs = {slot: slot_config(arguments, slot) for slot in SLOTS}
    if arguments["position_encoding"] != "sinusoidal":
        configs["position_encoding"] = slot_config(
            arguments, "position_encoding", POSITION_LAYERS
        )
    return configs


def has_final_norm(arguments):
    """Whether a norm follows each stack."""
    final_norm = arguments["final_norm"]
    return arguments["normalize_first"] if final_norm is None else final_norm


def relative_position(arguments):
    """Returns `position_encoding` if the attention layers apply it, or `None`.

    `arguments` are those of a `models.Transformer`, with configurations.
    """
    config = arguments["position_encoding"]
    if config == "sinusoidal":
        return None
    is_relative = getattr(prototype_of(config), "is_relative", False)
    return config if is_relative else None


class TransformerLayers:
    """Creates the named layers of a Transformer from its arguments."""

    def __init__(self, arguments, policy):
        self.arguments = arguments
        self.policy = policy
        self.relative_position = relative_position(arguments)
        self.shared_positions = {}

    def embeddings(self):
        arguments = self.arguments
        target = self._embedding(
            "shared_embedding"
            if arguments["share_embeddings"]
            else "target_embedding",
            arguments["target_vocabulary_size"],
            arguments["share_embeddings"] or arguments["tie_output_embedding"],
        )
        if arguments["share_embeddings"]:
            return target, target
        source = keras.layers.Embedding(
            arguments["source_vocabulary_size"],
            arguments["hidden_dim"],
            embeddings_initializer=self._initializer(),
            name="source_embedding",
            dtype=self.policy,
        )
        return source, target

    def _embedding(self, name, vocabulary_size, tie_weights):
        return keras.layers.ReversibleEmbedding(
            vocabulary_size,
            self.arguments["hidden_dim"],
            tie_weights=tie_weights,
            embeddings_initializer=self._initializer(),
            # Its table stays in float32 under a mixed policy, and so would the
            # product with it, the largest one of the model.
            reverse_dtype=self.policy.compute_dtype,
            name=name,
            dtype=self.policy,
        )

    def _initializer(self):
        # Unit variance after the multiplication by sqrt(D).
        return keras.initializers.RandomNormal(
            stddev=self.arguments["hidden_dim"] ** -0.5
        )

    def dropout(self, name):
        return Dropout(self.arguments["dropout"], name=name, dtype=self.policy)

    def position_encodings(self):
        """Those of the source and of the target, which may be one layer."""
        source = self._position_encoding("position_encoding")
        if self.arguments["share_position_encoding"]:
            return source, source
        return source, self._position_encoding("target_position_encoding")

    def _position_encoding(self, name):
        config = self.arguments["position_encoding"]
        if config is None or self.relative_position is not None:
            return None
        if config == "sinusoidal":
            return SinusoidalPositionEncoding(name=name, dtype=self.policy)
        layer = clone_prototype(config, name, self.policy)
        # On a copy, which is built: the layer itself stays as it is.
        shape = (2, 3, self.arguments["hidden_dim"])  # (B, T, D)
        copy = clone_prototype(config, name, self.policy)
        received = tuple(copy.compute_output_shape(shape))
        if received != shape:
            raise ValueError(
                "`position_encoding` must be a layer that returns its input "
                "with positions, of the same shape. Received: "
                f"{type(layer).__name__}, which returns {received} for an "
                f"input {shape}."
            )
        return layer

    def output_bias(self):
        if not self.arguments["output_bias"]:
            return None
        return OutputBias(name="output_bias", dtype=self.policy)

    def blocks(self, side):
        block = {
            "encoder": TransformerEncoderBlock,
            "decoder": TransformerDecoderBlock,
        }[side]
        names = (
            "num_heads",
            "intermediate_dim",
            "dropout",
            "attention_dropout",
            "activation",
            "layer_norm_epsilon",
            "normalize_first",
            "key_bias",
            "attention_initializer",
        )
        options = {name: self.arguments[name] for name in names}
        if side == "decoder":
            options["cross_attention"] = self.arguments[
                "decoder_cross_attention"
            ]
        return [
            block(
                **options,
                self_attention=self_attention_at(
                    self.arguments[f"{side}_self_attention"], number
                ),
                relative_position=self._relative_position_of(side),
                residual_connection=self._residual_connection_of(side),
                kernel_initializer=self._kernel_initializer_at(number),
                name=f"{side}_block_{number}",
                dtype=self.policy,
            )
            for number in range(1, self.arguments[f"num_{side}_layers"] + 1)
        ]

    def block_drops(self, side):
        """The layers that may skip the blocks of a stack, by block, or `{}`."""
        config = self.arguments["layer_drop"]
        if config is None:
            return {}
        seed = prototype_of(config).get_config().get("seed")
        drops = {}
        for number in range(1, self.arguments[f"num_{side}_layers"] + 1):
            options = {}
            if seed is not None:
                # With one seed all blocks would be skipped at once.
                options["seed"] = seed + 2 * number + (side == "decoder")
            block = f"{side}_block_{number}"
            drops[block] = clone_prototype(
                config, f"{block}_drop", self.policy, **options
            )
        return drops

    def _residual_connection_of(self, side):
        config = self.arguments["residual_connection"]
        if config is None:
            return None
        given = prototype_of(config).get_config()
        depths = {
            name: self.arguments[name]
            for name in ("num_encoder_layers", "num_decoder_layers")
            if given.get(name) is None
        }
        layer = clone_prototype(
            config, "residual_connection", self.policy, stack=side, **depths
        )
        return prototype_config(layer)

    def _kernel_initializer_at(self, number):
        """The initializer of the kernels in a block: it may know its depth."""
        config = self.arguments["kernel_initializer"]
        initializer = keras.initializers.get(config)
        if hasattr(initializer, "at_block"):
            initializer = initializer.at_block(number)
        return initializer

    def _relative_position_of(self, side):
        """The relative positions of a stack, or `None`.

        They are a configuration, or the layer that all its attentions share.
        """
        config = self.relative_position
        if side in self.shared_positions:
            return self.shared_positions[side]
        is_shared = getattr(prototype_of(config), "shared", False)
        if config is None or (side == "encoder" and not is_shared):
            return config
        # In a decoder, later words are not known yet.
        options = {} if side == "encoder" else {"bidirectional": False}
        name = f"{side}_position" if is_shared else "position"
        layer = clone_prototype(config, name, self.policy, **options)
        if not is_shared:
            return prototype_config(layer)
        num_heads = self.arguments["num_heads"]
        layer.build(
            (None, num_heads, None, self.arguments["hidden_dim"] // num_heads)
        )
        self.shared_positions[side] = layer
        return layer

    def stack_norm(self, name):
        if not has_final_norm(self.arguments):
            return None
        return keras.layers.LayerNormalization(
            epsilon=self.arguments["layer_norm_epsilon"],
            name=name,
            dtype=self.policy,
        )

    def clone(self, slot, side=None):
        options = {}
        if slot.endswith("aggregation"):
            stack = slot.removesuffix("_aggregation")
            options["relative_position"] = self._relative_position_of(stack)
        return clone_slot(self.arguments, slot, self.policy, side, **options)
