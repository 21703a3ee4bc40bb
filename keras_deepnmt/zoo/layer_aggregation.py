"""Presets of Dou et al. (2018): aggregation, multi-layer attention, diversity.

The models of Tables 1 to 4. They change both stacks unless the name says which.
Source embeddings, target embeddings and output have a matrix each, as in the
toolkit of the paper.
"""

from keras_deepnmt.layers.layer_aggregation import LayerAggregation
from keras_deepnmt.layers.multi_layer_attention import MultiLayerAttention
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import base, big, changed, tiny

PAPER = "Dou et al. (2018)"
_SEPARATE = {"share_embeddings": False, "tie_output_embedding": False}
BIG_SIZES = {
    "base": changed(base, **_SEPARATE),
    "big": changed(big, **_SEPARATE),
}
SIZES = {"tiny": tiny, "base": BIG_SIZES["base"]}
_register = register_variant(Transformer, SIZES, PAPER)
_register_big = register_variant(Transformer, {**SIZES, **BIG_SIZES}, PAPER)


@register_variant(Transformer, BIG_SIZES, PAPER, variant="transformer")
def layer_aggregation_baseline(arguments):
    """The plain Transformer that the paper compares with."""
    return {}


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
    """Adds the aggregated outputs of all lower layers to each layer (Eq. 4)."""
    return _both(arguments, "dense")


@_register
def layer_aggregation_linear(arguments):
    """A linear combination of all layers, with one matrix per layer (Eq. 5)."""
    return _both(arguments, "linear")


@_register
def layer_aggregation_linear_feed_forward(arguments):
    """A linear combination of all layers by a network of two matrices."""
    return _both(arguments, "linear", linear_mode="feed_forward")


@_register
def layer_aggregation_iterative(arguments):
    """Nodes that merge the layers one by one, from the bottom up (Eq. 6)."""
    return _both(arguments, "iterative")


@_register
def layer_aggregation_hierarchical(arguments):
    """A tree of nodes over pairs of layers; the next layer reads each node."""
    return _both(arguments, "hierarchical")


@_register
def multi_layer_attention_k2(arguments):
    """Self-attention over the two layers below (Eq. 8)."""
    return _lower_layers(arguments, 2)


@_register
def multi_layer_attention_k3(arguments):
    """Self-attention over the three layers below (Eq. 8)."""
    return _lower_layers(arguments, 3)


@_register
def layer_aggregation_iterative_diversity(arguments):
    """Iterative aggregation with the diversity loss (Eq. 10)."""
    return _both(arguments, "iterative") | {"layer_diversity": 1.0}


@_register_big
def layer_aggregation_hierarchical_diversity(arguments):
    """Hierarchical aggregation with the diversity loss: the main model."""
    return _both(arguments, "hierarchical") | {"layer_diversity": 1.0}


@_register
def multi_layer_attention_k2_diversity(arguments):
    """Self-attention over the two layers below, with the diversity loss."""
    return _lower_layers(arguments, 2) | {"layer_diversity": 1.0}


@_register
def layer_aggregation_hierarchical_encoder(arguments):
    """Hierarchical aggregation in the encoder only."""
    return {"encoder_aggregation": _aggregation(arguments, "hierarchical")}


@_register
def layer_aggregation_hierarchical_decoder(arguments):
    """Hierarchical aggregation in the decoder only."""
    return {"decoder_aggregation": _aggregation(arguments, "hierarchical")}


@_register
def layer_aggregation_hierarchical_no_residual(arguments):
    """Hierarchical aggregation without residual connections in its nodes."""
    return _both(arguments, "hierarchical", residual="none")


@_register
def layer_aggregation_hierarchical_top_residual(arguments):
    """Hierarchical aggregation; nodes add only their top layer as residual."""
    return _both(arguments, "hierarchical", residual="top")


@_register
def layer_aggregation_hierarchical_relu(arguments):
    """Hierarchical aggregation with ReLU in its nodes."""
    return _both(arguments, "hierarchical", function="relu")


@_register
def layer_aggregation_hierarchical_attention(arguments):
    """Hierarchical aggregation with self-attention in its nodes."""
    return _both(arguments, "hierarchical", function="attention")


describe_paper(
    PAPER,
    title="Exploiting Deep Representations for Neural Machine Translation",
    links="[Dou et al., 2018](https://arxiv.org/abs/1810.10181)",
    changes="combines the outputs of all layers, attends to several layers, "
    "trains layers to differ",
    presets="`layer_aggregation_*`, `multi_layer_attention_*`",
    baseline="`layer_aggregation_baseline_*`",
    embeddings="three matrices",
)
