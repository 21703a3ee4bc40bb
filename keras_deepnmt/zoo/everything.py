"""All papers in one model: a Transformer with a layer in every slot."""

from keras_deepnmt.layers.fine_grained_layer_attention import (
    FineGrainedLayerAttention,
)
from keras_deepnmt.layers.hybrid_self_attention import HybridSelfAttention
from keras_deepnmt.layers.layer_aggregation import LayerAggregation
from keras_deepnmt.layers.multi_layer_attention import MultiLayerAttention
from keras_deepnmt.layers.role_interaction import RoleInteraction
from keras_deepnmt.layers.surface_fusion import SurfaceFusion
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.role_interaction import both_sides
from keras_deepnmt.zoo.transformer import tiny

# Those of the model and of the layers below.
NAMES_OF_PAPERS = (
    "Vaswani et al. (2017)",
    "Dou et al. (2018)",
    "Song et al. (2018)",
    "Weissenborn et al. (2019)",
    "Liu et al. (2021)",
)


@register_variant(
    Transformer,
    {"tiny": tiny},
    "all papers",
)
def everything(arguments):
    """Role interaction, hybrid attention, aggregation, fusion and diversity."""
    num_heads = arguments["num_heads"]
    dropout = arguments["dropout"]
    aggregation = LayerAggregation("hierarchical", dropout=dropout)
    return {
        **both_sides(RoleInteraction, arguments, assignment="dense"),
        "encoder_self_attention": MultiLayerAttention(
            num_heads,
            attention=HybridSelfAttention(
                num_heads,
                fusion="gated_sum",
                gate_reduction=min(32, arguments["hidden_dim"]),
            ),
            dropout=dropout,
        ),
        "decoder_self_attention": MultiLayerAttention(
            num_heads,
            attention=HybridSelfAttention(
                num_heads, branches=("forward", "local"), fusion="sum"
            ),
            dropout=dropout,
        ),
        "encoder_aggregation": aggregation,
        "decoder_aggregation": aggregation,
        "encoder_fusion": FineGrainedLayerAttention(
            arguments["num_decoder_layers"]
        ),
        "output_fusion": SurfaceFusion("hard", dropout=dropout),
        "layer_diversity": 1.0,
    }
