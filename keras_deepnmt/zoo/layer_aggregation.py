"""Presets of Dou et al. (2018): aggregation of layers, lower layers, diversity.

Tables 1 to 4 of the paper; "both stacks" unless the name says which.
"""

from keras_deepnmt.layers.layer_aggregation import LayerAggregation
from keras_deepnmt.layers.multi_layer_attention import MultiLayerAttention
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import base, big, tiny

SIZES = {"tiny": tiny, "base": base}
_register = register_variant(Transformer, SIZES, "Dou et al. (2018)")
_register_big = register_variant(
    Transformer, {**SIZES, "big": big}, "Dou et al. (2018)"
)


def _aggregation(arguments, strategy, **options):
    return LayerAggregation(
        strategy,
        dropout=arguments["dropout"],
        num_heads=arguments["num_heads"],
        **options,
    )


def _both(arguments, strategy, **options):
    layer = _aggregation(arguments, strategy, **options)
    return {"encoder_aggregation": layer, "decoder_aggregation": layer}


def _lower_layers(arguments, num_layers):
    layer = MultiLayerAttention(
        arguments["num_heads"], num_layers, dropout=arguments["dropout"]
    )
    return {"encoder_self_attention": layer, "decoder_self_attention": layer}


@_register
def layer_aggregation_dense(arguments):
    """Each layer also reads the sum of those below (Eq. 4)."""
    return _both(arguments, "dense")


@_register
def layer_aggregation_linear(arguments):
    """A linear combination of all layers, one matrix each (Eq. 5)."""
    return _both(arguments, "linear")


@_register
def layer_aggregation_linear_feed_forward(arguments):
    """A combination of all layers by one network of two matrices."""
    return _both(arguments, "linear", linear_mode="feed_forward")


@_register
def layer_aggregation_iterative(arguments):
    """Nodes that join the layers one by one, from below (Eq. 6)."""
    return _both(arguments, "iterative")


@_register
def layer_aggregation_hierarchical(arguments):
    """A tree of nodes over pairs of layers, read by the layers above."""
    return _both(arguments, "hierarchical")


@_register
def multi_layer_attention_k2(arguments):
    """Self-attention to the two layers below (Eq. 8)."""
    return _lower_layers(arguments, 2)


@_register
def multi_layer_attention_k3(arguments):
    """Self-attention to the three layers below (Eq. 8)."""
    return _lower_layers(arguments, 3)


@_register
def layer_aggregation_iterative_diversity(arguments):
    """Iterative aggregation, layers made diverse (Eq. 10)."""
    return _both(arguments, "iterative") | {"layer_diversity": 1.0}


@_register_big
def layer_aggregation_hierarchical_diversity(arguments):
    """Hierarchical aggregation, layers made diverse: the paper's main model."""
    return _both(arguments, "hierarchical") | {"layer_diversity": 1.0}


@_register
def multi_layer_attention_k2_diversity(arguments):
    """Self-attention to two layers below, layers made diverse."""
    return _lower_layers(arguments, 2) | {"layer_diversity": 1.0}


@_register
def layer_aggregation_hierarchical_encoder(arguments):
    """Hierarchical aggregation of the encoder alone."""
    return {"encoder_aggregation": _aggregation(arguments, "hierarchical")}


@_register
def layer_aggregation_hierarchical_decoder(arguments):
    """Hierarchical aggregation of the decoder alone."""
    return {"decoder_aggregation": _aggregation(arguments, "hierarchical")}


@_register
def layer_aggregation_hierarchical_no_residual(arguments):
    """Hierarchical aggregation, nodes without a residual connection."""
    return _both(arguments, "hierarchical", residual="none")


@_register
def layer_aggregation_hierarchical_top_residual(arguments):
    """Hierarchical aggregation, residual connection from the top layer."""
    return _both(arguments, "hierarchical", residual="top")


@_register
def layer_aggregation_hierarchical_relu(arguments):
    """Hierarchical aggregation with ReLU in its nodes."""
    return _both(arguments, "hierarchical", function="relu")


@_register
def layer_aggregation_hierarchical_attention(arguments):
    """Hierarchical aggregation with self-attention in its nodes."""
    return _both(arguments, "hierarchical", function="attention")
