"""The papers' layers for each slot of a model, twice, at tiny sizes.

`one_choice` and `another_choice` differ in every variant that takes another
path through a layer; dropout is off, so that results can be compared.
"""

import itertools

from keras_deepnmt.layers import (
    ContextualizedEmbedding,
    FineGrainedLayerAttention,
    HybridSelfAttention,
    LayerAggregation,
    LayerDiversity,
    MultiLayerAttention,
    RoleInteraction,
    SurfaceFusion,
)

NUM_LAYERS = 3  # the least with two lower layers
NUM_HEADS = 2


def one_choice():
    """What `everything_tiny` holds."""
    aggregation = LayerAggregation("hierarchical", dropout=0.0)
    return {
        "source_embedding_layer": RoleInteraction(3, dropout=0.0),
        "target_embedding_layer": RoleInteraction(
            3, bidirectional=False, dropout=0.0
        ),
        "encoder_self_attention": MultiLayerAttention(
            NUM_HEADS,
            attention=HybridSelfAttention(
                NUM_HEADS, fusion="gated_sum", gate_reduction=1
            ),
            dropout=0.0,
        ),
        "decoder_self_attention": MultiLayerAttention(
            NUM_HEADS,
            attention=HybridSelfAttention(
                NUM_HEADS, branches=("forward", "local"), fusion="sum"
            ),
            dropout=0.0,
        ),
        "encoder_aggregation": aggregation,
        "decoder_aggregation": aggregation,
        "encoder_fusion": FineGrainedLayerAttention(
            NUM_LAYERS, drop_connect=0.0
        ),
        "output_fusion": SurfaceFusion("hard", dropout=0.0),
        "layer_diversity": LayerDiversity(0.5),
    }


def another_choice():
    """Other strategies, fusions, role encoders and granularities."""
    return {
        "source_embedding_layer": ContextualizedEmbedding(
            3, assignment="softmax", dropout=0.0
        ),
        "target_embedding_layer": RoleInteraction(
            3,
            assignment="softmax",
            role_encoder="cnn",
            rank_one=True,
            residual=False,
            bidirectional=False,
            dropout=0.0,
        ),
        "encoder_self_attention": HybridSelfAttention(
            NUM_HEADS, fusion="concat", window=[1, 2], strict=True
        ),
        "decoder_self_attention": HybridSelfAttention(
            NUM_HEADS,
            branches=("global", "local"),
            fusion="gated_sum",
            gate_reduction=1,
        ),
        "encoder_aggregation": LayerAggregation(
            "iterative", function="relu", residual="top", dropout=0.0
        ),
        "decoder_aggregation": LayerAggregation(
            "hierarchical",
            function="attention",
            num_heads=NUM_HEADS,
            dropout=0.0,
        ),
        "encoder_fusion": FineGrainedLayerAttention(
            NUM_LAYERS,
            drop_connect=0.0,
            output_norm=True,
            embedding_norm=True,
            granularity="scalar",
        ),
        "output_fusion": SurfaceFusion("soft", feed_forward=True, dropout=0.0),
        "layer_diversity": LayerDiversity(2.0),
    }


def of_convolutions():
    """Layers for the slots of a convolutional model."""
    names = ("source_embedding_layer", "target_embedding_layer")
    return {
        **{name: one_choice()[name] for name in names},
        "output_fusion": another_choice()["output_fusion"],
    }


def pairs():
    """Names of two slots and the layers in them, for every pair."""
    first, second = one_choice(), another_choice()
    for number, names in enumerate(itertools.combinations(first, 2)):
        # Each slot meets each other one with either of its layers in turn.
        chosen = (first, second) if number % 2 else (second, first)
        yield (
            names,
            {
                name: layers[name]
                for name, layers in zip(names, chosen, strict=True)
            },
        )
