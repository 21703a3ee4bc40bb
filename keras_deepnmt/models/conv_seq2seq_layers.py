"""Creates the named layers of a convolutional model from its arguments."""

import keras

from keras_deepnmt.layers.argument_checks import (
    check_num_layers,
    check_probability,
)
from keras_deepnmt.layers.conv_decoder_block import ConvDecoderBlock
from keras_deepnmt.layers.conv_encoder_block import ConvEncoderBlock
from keras_deepnmt.layers.dense_attention_memory import DenseAttentionMemory
from keras_deepnmt.layers.dropout import Dropout
from keras_deepnmt.layers.learned_position_embedding import (
    LearnedPositionEmbedding,
)
from keras_deepnmt.layers.weight_normalized_dense import WeightNormalizedDense
from keras_deepnmt.models.slot_layers import slot_config
from keras_deepnmt.models.slots import clone_slot

SLOTS = ("source_embedding_layer", "target_embedding_layer", "output_fusion")
SIZES = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "hidden_dim",
    "num_encoder_layers",
    "num_decoder_layers",
    "summary_length",
    "growth_dim",
    "embedding_dim",
    "attention_dim",
    "kernel_size",
    "max_length",
)
# Arguments that may differ from layer to layer.
BY_LAYER = ("hidden_dim", "growth_dim", "kernel_size")
CHOICES = {
    "encoder_connection": ("residual", "dense"),
    "decoder_connection": ("residual", "dense"),
    "attention": ("single", "per_layer"),
    "position_encoding": ("learned", None),
}
EMBEDDING_STDDEV = 0.1


def check_arguments(arguments):
    """Raises a `ValueError` for invalid arguments of `models.ConvSeq2Seq`."""
    check_num_layers(arguments)
    check_probability("dropout", arguments["dropout"])
    for name in SIZES:
        value = arguments[name]
        values = value if isinstance(value, list | tuple) else [value]
        if any(size is not None and size < 1 for size in values):
            raise ValueError(
                f"`{name}` must be at least 1. Received: {name}={value}."
            )
    for name, choices in CHOICES.items():
        if arguments[name] not in choices:
            raise ValueError(
                f"`{name}` must be one of {', '.join(map(repr, choices))}. "
                f"Received: {name}={arguments[name]!r}."
            )
    for name in BY_LAYER:
        for side in ("encoder", "decoder"):
            layers, value = arguments[f"num_{side}_layers"], arguments[name]
            if isinstance(value, list | tuple) and len(value) != layers:
                raise ValueError(
                    f"`{name}` must be an int or have an entry for each layer "
                    f"of both stacks. Received: {name}={value} and "
                    f"num_{side}_layers={layers}."
                )


def complete_arguments(arguments):
    """Fills in defaults and makes all values serializable.

    Tuples become lists, and layers in slots become configurations.
    """
    completed = dict(arguments)
    hidden = completed["hidden_dim"]
    if completed["growth_dim"] is None:
        is_list = isinstance(hidden, list | tuple)
        completed["growth_dim"] = (
            [max(1, width // 2) for width in hidden]
            if is_list
            else max(1, hidden // 2)
        )
    for name in BY_LAYER:
        if isinstance(completed[name], tuple):
            completed[name] = list(completed[name])
    first = _by_layer(hidden, 1)[0]
    completed["attention_dim"] = completed["attention_dim"] or first
    completed["embedding_dim"] = (
        completed["embedding_dim"] or completed["attention_dim"]
    )
    return completed | {slot: slot_config(completed, slot) for slot in SLOTS}


def encoder_width(arguments):
    """Returns the width of all states that the encoder hands on."""
    num_layers = arguments["num_encoder_layers"]
    hidden, growth = (
        _by_layer(arguments[name], num_layers)
        for name in ("hidden_dim", "growth_dim")
    )
    if arguments["encoder_connection"] == "residual":
        return hidden[-1]
    width, length = hidden[0], arguments["summary_length"]
    for i in range(num_layers):
        is_summary = length and (i + 1) % length == 0
        width = hidden[i] if is_summary else width + growth[i]
    return width


def _by_layer(value, num_layers):
    is_list = isinstance(value, list | tuple)
    return list(value) if is_list else [value] * num_layers


class ConvSeq2SeqLayers:
    """Creates the named layers of a convolutional model from its arguments."""

    def __init__(self, arguments, policy):
        self.arguments = arguments
        self.policy = policy

    def embedding(self, side):
        return keras.layers.Embedding(
            self.arguments[f"{side}_vocabulary_size"],
            self.arguments["embedding_dim"],
            embeddings_initializer=keras.initializers.RandomNormal(
                stddev=EMBEDDING_STDDEV
            ),
            name=f"{side}_embedding",
            dtype=self.policy,
        )

    def positions(self, side):
        if self.arguments["position_encoding"] is None:
            return None
        return LearnedPositionEmbedding(
            self.arguments["max_length"],
            EMBEDDING_STDDEV,
            name=f"{side}_positions",
            dtype=self.policy,
        )

    def projection(self, name):
        """Projects to the attention's width; `None` if embeddings have it."""
        width = self.arguments["attention_dim"]
        if self.arguments["embedding_dim"] == width:
            return None
        return self._dense(width, f"{name}_projection")

    def dropout(self, name):
        return Dropout(self.arguments["dropout"], name=name, dtype=self.policy)

    def stack_input(self, side):
        width = _by_layer(self.arguments["hidden_dim"], 1)[0]
        return self._dense(width, f"{side}_input", use_dropout=True)

    def blocks(self, side):
        block = {"encoder": ConvEncoderBlock, "decoder": ConvDecoderBlock}[side]
        num_layers = self.arguments[f"num_{side}_layers"]
        hidden, growth, kernel = (
            _by_layer(self.arguments[name], num_layers) for name in BY_LAYER
        )
        blocks = []
        for i in range(num_layers):
            connection = self._connection(side, i + 1)
            blocks.append(
                block(
                    growth[i] if connection == "dense" else hidden[i],
                    connection,
                    kernel[i],
                    self.arguments["dropout"],
                    name=f"{side}_block_{i + 1}",
                    dtype=self.policy,
                )
            )
        return blocks

    def _connection(self, side, number):
        """Makes each `summary_length`-th layer of a dense stack a summary."""
        connection = self.arguments[f"{side}_connection"]
        length = self.arguments["summary_length"]
        if connection == "dense" and length and number % length == 0:
            return "summary"
        return connection

    def attends_to_blocks(self):
        """Whether the attention reads the outputs of all residual blocks."""
        return (
            self.arguments["attention"] == "per_layer"
            and self.arguments["encoder_connection"] == "residual"
        )

    def attention_memory(self):
        single = self.arguments["attention"] == "single"
        num_attentions = self.arguments["num_decoder_layers"]
        return DenseAttentionMemory(
            1 if single else 2,
            # The released code does not scale gradients with DenseAtt-2.
            gradient_scale=0.5 / num_attentions if single else 1.0,
            name="attention_memory",
            dtype=self.policy,
        )

    def decoder_output(self):
        return self._dense(self.arguments["embedding_dim"], "decoder_output")

    def output_projection(self):
        return self._dense(
            self.arguments["target_vocabulary_size"],
            "output_projection",
            use_dropout=True,
        )

    def _dense(self, units, name, use_dropout=False):
        return WeightNormalizedDense(
            units,
            dropout=self.arguments["dropout"] if use_dropout else 0.0,
            name=name,
            dtype=self.policy,
        )

    def clone(self, slot):
        return clone_slot(self.arguments, slot, self.policy)
