"""Every public layer and every preset, once, at a tiny size.

`tests/conformance` proves each property over all entries. To add a layer or
a preset, add a line here; `tests/conformance/test_catalog.py` fails without.
"""

import dataclasses
import functools
from collections.abc import Callable

import keras
import numpy as np
import paper_slots
from toy_slots import all_slots

import keras_deepnmt.layers
from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.zoo import create_model
from keras_deepnmt.zoo.registry import get_preset, variants

B, S, T, D, N = 3, 7, 5, 8, 2

TWO_LAYERS = dict(num_encoder_layers=2, num_decoder_layers=1)
DIMENSIONS = {
    Transformer: dict(
        hidden_dim=D, intermediate_dim=16, num_heads=N, **TWO_LAYERS
    ),
    ConvSeq2Seq: dict(hidden_dim=D, growth_dim=5, **TWO_LAYERS),
}


@dataclasses.dataclass(frozen=True)
class LayerEntry:
    """One layer, how to make it, and what it is called with.

    `inputs` holds a shape for a tensor, a list of shapes for a list of them.
    `output_dtype` is given where it is not the layer's compute dtype.
    """

    name: str
    make: Callable
    inputs: dict[str, tuple | list]
    arguments: dict = dataclasses.field(default_factory=dict)
    output_dtype: str | None = None

    def example(self, seed=0):
        """One batch: floats for shapes, masks that hide a few positions."""
        random = np.random.default_rng(seed)
        return {
            name: _of_each(shape, functools.partial(_values, random), name)
            for name, shape in self.inputs.items()
        }

    def functional(self, **kwargs):
        """The layer in a functional model with open batch and lengths."""
        layer = self.make(**kwargs)
        symbols = {
            name: _of_each(shape, _symbol, name)
            for name, shape in self.inputs.items()
        }
        outputs = layer(**symbols, **self.arguments)
        if isinstance(outputs, list):
            outputs = keras.ops.concatenate(outputs, axis=-1)
        return keras.Model(symbols, outputs)


@dataclasses.dataclass(frozen=True)
class ModelEntry:
    """One model at tiny size."""

    name: str
    preset: str
    vocabulary_sizes: tuple[int, int] = (11, 13)
    overrides: Callable[[], dict] = dict
    mark: str = ""  # `thorough` or `slow`: what it takes to prove it

    def make(self, **overrides):
        dimensions = DIMENSIONS[get_preset(self.preset).model]
        return create_model(
            self.preset,
            *self.vocabulary_sizes,
            **{**dimensions, **self.overrides(), **overrides},
        )

    def example(self, rows=4, source_length=S, target_length=T, seed=0):
        """One batch of uneven sentences: `(inputs, labels)`."""
        random = np.random.default_rng(seed)
        source = np.zeros((rows, source_length), "int32")
        target = np.zeros((rows, target_length + 1), "int32")
        for row in range(rows):
            # The first is as long as can be, the others are shorter.
            length = source_length - (row * 2) % (source_length - 1)
            source[row, : length - 1] = random.integers(
                4, self.vocabulary_sizes[0], length - 1
            )
            source[row, length - 1] = 3
            length = target_length - row % (target_length - 1)
            target[row, 0] = 2
            target[row, 1:length] = random.integers(
                4, self.vocabulary_sizes[1], length - 1
            )
            target[row, length] = 3
        labels = target[:, 1:]
        target_ids = np.where(labels == 0, 0, target[:, :-1])
        inputs = {"source_ids": source, "target_ids": target_ids}
        return inputs, labels.copy()


def shared_biases(dtype=None, **options):
    """An attention with the position biases of another one."""
    layer = keras_deepnmt.layers.RelativePositionBias(4, 3, dtype=dtype)
    layer.build((None, N, None, D // N))
    return keras_deepnmt.layers.MultiHeadAttention(
        N, relative_position=layer, dtype=dtype, **options
    )


LAYERS = [
    LayerEntry(
        "Dropout",
        functools.partial(keras_deepnmt.layers.Dropout, 0.1),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "MultiHeadAttention",
        functools.partial(keras_deepnmt.layers.MultiHeadAttention, N),
        {"query": (B, T, D), "value": (B, S, D), "attention_mask": (B, T, S)},
    ),
    LayerEntry(
        "MultiHeadAttention, causal",
        functools.partial(keras_deepnmt.layers.MultiHeadAttention, N),
        {"query": (B, T, D)},
        {"use_causal_mask": True},
    ),
    LayerEntry(
        "HybridSelfAttention",
        functools.partial(
            keras_deepnmt.layers.HybridSelfAttention, N, gate_reduction=1
        ),
        {"query": (B, S, D), "attention_mask": (B, S, S)},
    ),
    LayerEntry(
        "HybridSelfAttention, concatenated, strict, several windows",
        functools.partial(
            keras_deepnmt.layers.HybridSelfAttention,
            N,
            fusion="concat",
            window=[1, 2],
            strict=True,
        ),
        {"query": (B, S, D), "attention_mask": (B, S, S)},
    ),
    LayerEntry(
        "HybridSelfAttention, summed, causal",
        functools.partial(
            keras_deepnmt.layers.HybridSelfAttention,
            N,
            branches=("forward", "local"),
            fusion="sum",
        ),
        {"query": (B, T, D)},
        {"use_causal_mask": True},
    ),
    LayerEntry(
        "FeedForward",
        functools.partial(keras_deepnmt.layers.FeedForward, 16),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "ResidualConnection",
        keras_deepnmt.layers.ResidualConnection,
        {"inputs": (B, T, D), "outputs": (B, T, D)},
    ),
    LayerEntry(
        "DeepNorm",
        functools.partial(keras_deepnmt.layers.DeepNorm, "decoder", 5, 3),
        {"inputs": (B, T, D), "outputs": (B, T, D)},
    ),
    LayerEntry(
        "LayerDrop",
        functools.partial(keras_deepnmt.layers.LayerDrop, 0.3),
        {"inputs": (B, T, D), "outputs": (B, T, D)},
    ),
    LayerEntry(
        "SinusoidalPositionEncoding",
        keras_deepnmt.layers.SinusoidalPositionEncoding,
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "TransformerEncoderBlock",
        functools.partial(keras_deepnmt.layers.TransformerEncoderBlock, N, 16),
        {"inputs": (B, S, D), "padding_mask": (B, S)},
    ),
    LayerEntry(
        "TransformerDecoderBlock",
        functools.partial(keras_deepnmt.layers.TransformerDecoderBlock, N, 16),
        {
            "inputs": (B, T, D),
            "memory": (B, S, D),
            "memory_padding_mask": (B, S),
        },
    ),
    LayerEntry(
        "TransformerEncoderBlock, DeepNorm",
        lambda **kwargs: keras_deepnmt.layers.TransformerEncoderBlock(
            N,
            16,
            residual_connection=keras_deepnmt.layers.DeepNorm("encoder", 5, 3),
            **kwargs,
        ),
        {"inputs": (B, S, D)},
    ),
    LayerEntry(
        "TransformerDecoderBlock, scaled kernels",
        lambda **kwargs: keras_deepnmt.layers.TransformerDecoderBlock(
            N,
            16,
            keras_deepnmt.layers.HybridSelfAttention(N, ("forward", "local")),
            kernel_initializer=keras_deepnmt.layers.DepthScaledInitializer(0.1),
            **kwargs,
        ),
        {"inputs": (B, T, D), "memory": (B, S, D)},
    ),
    LayerEntry(
        "AggregationNode",
        keras_deepnmt.layers.AggregationNode,
        {"inputs": [(B, S, D)] * 3},
    ),
    LayerEntry(
        "AggregationNode, relu, without residual",
        functools.partial(keras_deepnmt.layers.AggregationNode, "relu", "none"),
        {"inputs": [(B, S, D)] * 2},
    ),
    LayerEntry(
        "AggregationNode, attention, top residual, causal",
        functools.partial(
            keras_deepnmt.layers.AggregationNode,
            "attention",
            "top",
            num_heads=N,
        ),
        {"inputs": [(B, T, D)] * 2, "padding_mask": (B, T)},
        {"use_causal_mask": True},
    ),
    LayerEntry(
        "LayerAggregation, dense",
        functools.partial(keras_deepnmt.layers.LayerAggregation, "dense"),
        {"layer_states": [(B, S, D)] * 3},
    ),
    LayerEntry(
        "LayerAggregation, linear",
        functools.partial(keras_deepnmt.layers.LayerAggregation, "linear"),
        {"layer_states": [(B, S, D)] * 3},
    ),
    LayerEntry(
        "LayerAggregation, linear, feed-forward",
        functools.partial(
            keras_deepnmt.layers.LayerAggregation,
            "linear",
            linear_mode="feed_forward",
        ),
        {"layer_states": [(B, S, D)] * 3},
    ),
    LayerEntry(
        "LayerAggregation, iterative",
        functools.partial(keras_deepnmt.layers.LayerAggregation, "iterative"),
        {"layer_states": [(B, S, D)] * 3},
    ),
    LayerEntry(
        "LayerAggregation, hierarchical, attention",
        functools.partial(
            keras_deepnmt.layers.LayerAggregation,
            "hierarchical",
            "attention",
            num_heads=N,
        ),
        {"layer_states": [(B, S, D)] * 5, "padding_mask": (B, S)},
    ),
    LayerEntry(
        "LayerDiversity",
        keras_deepnmt.layers.LayerDiversity,
        {"layer_states": [(B, S, D)] * 3, "padding_mask": (B, S)},
    ),
    LayerEntry(
        "MultiLayerAttention",
        functools.partial(keras_deepnmt.layers.MultiLayerAttention, N),
        {
            "query": (B, S, D),
            "layer_states": [(B, S, D)] * 2,
            "attention_mask": (B, S, S),
        },
    ),
    LayerEntry(
        "MultiLayerAttention, of a prototype, attention in the node, causal",
        lambda **kwargs: keras_deepnmt.layers.MultiLayerAttention(
            N,
            3,
            keras_deepnmt.layers.MultiHeadAttention(N, use_bias=False),
            "attention",
            **kwargs,
        ),
        {"query": (B, T, D), "layer_states": [(B, T, D)] * 3},
        {"use_causal_mask": True},
    ),
    LayerEntry(
        "FineGrainedLayerAttention",
        functools.partial(keras_deepnmt.layers.FineGrainedLayerAttention, 2),
        {"layer_states": [(B, S, D)] * 3},
    ),
    LayerEntry(
        "FineGrainedLayerAttention, scalar, norms",
        functools.partial(
            keras_deepnmt.layers.FineGrainedLayerAttention,
            2,
            granularity="scalar",
            output_norm=True,
            embedding_norm=True,
            dropout=0.1,
        ),
        {"layer_states": [(B, S, D)] * 3},
    ),
    *[
        LayerEntry(
            f"SurfaceFusion, {options['mode']}, {options['surface']}",
            functools.partial(
                keras_deepnmt.layers.SurfaceFusion,
                output_projection=keras.layers.Dense(11),
                **options,
            ),
            {
                "inputs": (B, T, D),
                "memory": (B, S, D),
                "source_embeddings": (B, S, D),
                "memory_padding_mask": (B, S),
            },
            output_dtype="float32",
        )
        for options in (
            {"mode": "hard", "surface": "attention", "feed_forward": True},
            {"mode": "soft", "surface": "max", "temperature": 5.0},
            {"mode": "gate", "surface": "mean"},
        )
    ],
    LayerEntry(
        "RoleEncoder, of earlier tokens",
        functools.partial(
            keras_deepnmt.layers.RoleEncoder,
            3,
            bidirectional=False,
            exclusive=True,
        ),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "RoleAssignment, softmax, convolution",
        functools.partial(
            keras_deepnmt.layers.RoleAssignment, 3, "softmax", "cnn"
        ),
        {"inputs": (B, S, D), "padding_mask": (B, S)},
    ),
    LayerEntry(
        "ContextualizedEmbedding, convolution, target",
        functools.partial(
            keras_deepnmt.layers.ContextualizedEmbedding,
            3,
            role_encoder="cnn",
            bidirectional=False,
            positions="target",
        ),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "RoleInteraction",
        functools.partial(keras_deepnmt.layers.RoleInteraction, 3),
        {"inputs": (B, S, D), "padding_mask": (B, S)},
    ),
    LayerEntry(
        "RoleInteraction, one-hot, rank one, convolution",
        functools.partial(
            keras_deepnmt.layers.RoleInteraction,
            3,
            "onehot",
            rank_one=True,
            role_encoder="cnn",
        ),
        {"inputs": (B, S, D), "padding_mask": (B, S)},
    ),
    LayerEntry(
        "WeightNormalizedDense",
        functools.partial(
            keras_deepnmt.layers.WeightNormalizedDense, 11, dropout=0.1
        ),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "WeightNormalizedConv1D, without bias",
        functools.partial(
            keras_deepnmt.layers.WeightNormalizedConv1D, 11, 3, use_bias=False
        ),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "WeightNormalizedConv1D, same",
        functools.partial(
            keras_deepnmt.layers.WeightNormalizedConv1D, 11, 4, "same"
        ),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "GatedConvolution",
        functools.partial(
            keras_deepnmt.layers.GatedConvolution, 11, dropout=0.1
        ),
        {"inputs": (B, S, D), "padding_mask": (B, S)},
    ),
    LayerEntry(
        "GatedConvolution, causal",
        functools.partial(
            keras_deepnmt.layers.GatedConvolution, 11, padding="causal"
        ),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "SummaryLayer",
        functools.partial(keras_deepnmt.layers.SummaryLayer, 11),
        {"inputs": (B, T, D), "outputs": [(B, T, 11)] * 2},
    ),
    LayerEntry(
        "SummaryLayer, without projection",
        functools.partial(
            keras_deepnmt.layers.SummaryLayer, D, use_projection=False
        ),
        {"inputs": (B, T, D), "outputs": [(B, T, D)]},
    ),
    LayerEntry(
        "GradientScale",
        functools.partial(keras_deepnmt.layers.GradientScale, 0.25),
        {"inputs": (B, T, D)},
    ),
    LayerEntry(
        "LearnedPositionEmbedding",
        functools.partial(keras_deepnmt.layers.LearnedPositionEmbedding, 3),
        {"inputs": (B, T, D)},
    ),
    *[
        LayerEntry(
            f"ConvEncoderBlock, {connection}",
            functools.partial(
                keras_deepnmt.layers.ConvEncoderBlock, 11, connection
            ),
            {"layer_states": states, "padding_mask": (B, S)},
        )
        for connection, states in (
            ("residual", [(B, S, 11)]),
            ("summary", [(B, S, 6), (B, S, D)]),
        )
    ],
    LayerEntry(
        "ConvDecoderBlock, dense",
        functools.partial(keras_deepnmt.layers.ConvDecoderBlock, 11, "dense"),
        {
            "layer_states": [(B, T, 6), (B, T, D)],
            "target_embeddings": (B, T, D),
            "key": (B, 2, S, D),
            "value": (B, 2, S, D),
            "memory_padding_mask": (B, S),
        },
    ),
    LayerEntry(
        "MultiStepAttention",
        keras_deepnmt.layers.MultiStepAttention,
        {
            "inputs": (B, T, 11),
            "target_embeddings": (B, T, D),
            "key": (B, S, D),
            "value": (B, S, D),
        },
    ),
    *[
        LayerEntry(
            f"{layer.__name__}, variant {variant}",
            functools.partial(layer, variant, gradient_scale=0.5),
            {
                **target,
                "layer_states": [(B, S, 11), (B, S, 6), (B, S, D)],
                "source_embeddings": (B, S, D),
                **mask,
            },
        )
        for variant in (1, 2)
        for layer, target, mask in (
            (keras_deepnmt.layers.DenseAttentionMemory, {}, {}),
            (
                keras_deepnmt.layers.DenseAttention,
                {"inputs": (B, T, 11), "target_embeddings": (B, T, D)},
                {"memory_padding_mask": (B, S)},
            ),
        )
    ],
    LayerEntry(
        "MultiHeadAttention, shared keys and values, rotary, causal",
        lambda **kwargs: keras_deepnmt.layers.MultiHeadAttention(
            4,
            num_key_value_heads=2,
            relative_position=keras_deepnmt.layers.RotaryPositionEmbedding(),
            **kwargs,
        ),
        {"query": (B, T, D)},
        {"use_causal_mask": True},
    ),
    LayerEntry(
        "AverageAttention",
        functools.partial(keras_deepnmt.layers.AverageAttention, 16),
        {"query": (B, T, D)},
    ),
    LayerEntry(
        "SimplerSimpleRecurrentUnit",
        keras_deepnmt.layers.SimplerSimpleRecurrentUnit,
        {"query": (B, T, D)},
    ),
    *[
        LayerEntry(
            layer.__name__,
            functools.partial(layer, **options),
            {
                "queries": (B, N, T, D),
                "keys": (B, N, S, D),
                "values": (B, N, S, D),
            },
        )
        for layer, options in (
            (keras_deepnmt.layers.RotaryPositionEmbedding, {}),
            (keras_deepnmt.layers.AttentionLinearBiases, {}),
            (
                keras_deepnmt.layers.RelativePositionRepresentations,
                {"max_distance": 2},
            ),
            (
                keras_deepnmt.layers.RelativePositionBias,
                {"num_buckets": 4, "max_distance": 3},
            ),
        )
    ],
    LayerEntry(
        "MultiHeadAttention, position biases of others",
        shared_biases,
        {"query": (B, T, D)},
        {"use_causal_mask": True},
    ),
]

MODELS = [
    # Equal vocabularies: this preset then shares its embeddings.
    ModelEntry("transformer_tiny", "transformer_tiny", (13, 13)),
    ModelEntry(
        "pre-norm, untied, two blocks a side",
        "transformer_base",
        overrides=lambda: dict(
            normalize_first=True,
            tie_output_embedding=False,
            num_decoder_layers=2,
            position_encoding={
                "LearnedPositionEmbedding": {"add_to_inputs": True}
            },
            share_position_encoding=False,
            embedding_scale=2.0,
        ),
        mark="thorough",
    ),
    ModelEntry(
        "toys in every slot",
        "transformer_base",
        overrides=lambda: dict(
            num_decoder_layers=2,
            normalize_first=True,
            **all_slots(2, feeds_back=True),
        ),
        mark="slow",
    ),
    ModelEntry(
        "every slot",
        "everything_tiny",
        overrides=lambda: {
            **THREE_LAYERS,
            **paper_slots.one_choice(),
            "output_bias": True,
            "final_norm": True,
            "encode_end": False,
        },
        mark="thorough",
    ),
    ModelEntry(
        "every slot, other layers, pre-norm, no positions",
        "transformer_base",
        overrides=lambda: {
            **THREE_LAYERS,
            **paper_slots.another_choice(),
            "normalize_first": True,
            "position_encoding": None,
        },
        mark="slow",
    ),
    ModelEntry(
        "relative positions in every attention",
        "everything_tiny",
        overrides=lambda: {
            **THREE_LAYERS,
            **paper_slots.one_choice(),
            "decoder_aggregation": paper_slots.another_choice()[
                "decoder_aggregation"
            ],
            "position_encoding": {
                "RelativePositionRepresentations": {"max_distance": 2}
            },
        },
        mark="thorough",
    ),
    ModelEntry(
        "position biases that the attentions of a stack share",
        "everything_tiny",
        overrides=lambda: {
            **THREE_LAYERS,
            **paper_slots.one_choice(),
            "decoder_aggregation": paper_slots.another_choice()[
                "decoder_aggregation"
            ],
            "position_encoding": {
                "RelativePositionBias": {
                    "num_buckets": 4,
                    "max_distance": 3,
                    "shared": True,
                }
            },
        },
        mark="thorough",
    ),
    ModelEntry("conv_seq2seq_tiny", "conv_seq2seq_tiny"),
    ModelEntry(
        "dense, summaries, other widths, every slot",
        "dense_nmt_2_tiny",
        overrides=lambda: dict(
            hidden_dim=[D, 7, 5],
            growth_dim=[3, 5, 2],
            kernel_size=[3, 2, 1],
            embedding_dim=6,
            summary_length=2,
            max_length=6,  # less than sentences have
            **{**THREE_LAYERS, **paper_slots.of_convolutions()},
        ),
        mark="thorough",
    ),
]
THREE_LAYERS = dict.fromkeys(
    ("num_encoder_layers", "num_decoder_layers"), paper_slots.NUM_LAYERS
)


def small_variant(variant):
    """Arguments that make a variant small; its sizes differ only in numbers."""
    # A gate has a 32nd of the width, and a narrow one is likely to start dead.
    changes = {"hidden_dim": 256} if "gated" in variant else {}
    if variant == "transformer_layer_drop":
        # A block that few updates all skip would not move.
        changes["layer_drop"] = 0.01
    return {**THREE_LAYERS, **changes}


MODELS += [
    ModelEntry(
        names[0],
        names[0],
        overrides=functools.partial(small_variant, variant),
        mark="slow",
    )
    for variant, names in variants().items()
    if variant not in ("transformer", "everything", "conv_seq2seq")
]
MODELS += [
    ModelEntry(
        " and ".join(names),
        "transformer_base",
        overrides=lambda slots=slots: {**THREE_LAYERS, **slots},
        mark="slow",
    )
    for names, slots in paper_slots.pairs()
]


def public_layers():
    """Names of the public layers."""
    return {
        name
        for name, value in vars(keras_deepnmt.layers).items()
        if isinstance(value, type) and issubclass(value, keras.layers.Layer)
    }


def missing_entries():
    """Names of public layers and variants of presets that have no entry."""
    layers = {entry.name.split(",")[0] for entry in LAYERS}
    models = {get_preset(entry.preset).variant for entry in MODELS}
    return (public_layers() - layers) | (set(variants()) - models)


def identify(entry):
    """The name of a test's case."""
    return entry.name.replace(", ", "-").replace(" ", "_")


def _of_each(shape, function, name):
    """The result of `function(name, shape)`; for a list of shapes a list."""
    if isinstance(shape, list):
        return [function(f"{name}_{n}", part) for n, part in enumerate(shape)]
    return function(name, shape)


def _symbol(name, shape):
    return keras.Input(
        tuple(None if size in (S, T) else size for size in shape[1:]),
        dtype="bool" if "mask" in name else "float32",
        name=name,
    )


def _values(random, name, shape):
    if "mask" not in name:
        return random.normal(size=shape).astype("float32")
    mask = np.ones(shape, bool)
    for row in range(1, shape[0]):
        mask[row, ..., shape[-1] - row :] = False
    return mask
