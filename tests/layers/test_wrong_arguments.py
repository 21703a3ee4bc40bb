"""A wrong argument of a layer gives an error of one sentence that names the
argument, and never an error of Python's own."""

import keras
import numpy as np
import pytest

from keras_deepnmt import layers

X = np.zeros((2, 5, 16), "float32")
IDS = np.ones((2, 5), "int32")


@pytest.mark.parametrize(
    "call, argument",
    [
        (lambda: layers.FineGrainedLayerAttention(2)(X), "layer_states"),
        (lambda: layers.DenseAttention()(X, X), "layer_states"),
        (lambda: layers.DenseAttention()(X, X, X, X), "layer_states"),
        (lambda: layers.DenseAttentionMemory()(X, X), "layer_states"),
        (lambda: layers.LayerAggregation()(X), "layer_states"),
        (lambda: layers.LayerDiversity()(X), "layer_states"),
        (lambda: layers.MultiLayerAttention(2)(X, X), "layer_states"),
        (lambda: layers.ConvEncoderBlock(8)(X), "layer_states"),
        (lambda: layers.AggregationNode()(X), "inputs"),
        (lambda: layers.SummaryLayer(16)(X, X), "outputs"),
    ],
)
def test_one_tensor_for_a_list_of_states_is_refused(call, argument):
    with pytest.raises(ValueError, match=f"`{argument}`.*must be"):
        call()


@pytest.mark.parametrize(
    "layer",
    [
        layers.RoleInteraction(5),
        layers.RoleAssignment(5),
        layers.RoleEncoder(5),
        layers.ContextualizedEmbedding(5),
        layers.MultiHeadAttention(1),
        layers.HybridSelfAttention(1),
        layers.MultiLayerAttention(1, num_layers=1),
        layers.TransformerEncoderBlock(1, 8),
        layers.TransformerDecoderBlock(1, 8),
        layers.GatedConvolution(8),
        layers.SinusoidalPositionEncoding(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_token_ids_for_embeddings_are_refused(layer):
    with pytest.raises(ValueError, match="looked up in an embedding table"):
        layer(IDS)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: layers.RoleInteraction(0), "num_roles=0"),
        (lambda: layers.RoleInteraction(1), "num_roles=1"),
        (lambda: layers.RoleInteraction(5, "soft"), "assignment='soft'"),
        (lambda: layers.RoleEncoder(0), "role_units=0"),
        (lambda: layers.MultiHeadAttention(0), "num_heads=0"),
        (lambda: layers.MultiHeadAttention(2.0), "num_heads=2.0"),
        (lambda: layers.FineGrainedLayerAttention(0), "num_decoder_layers=0"),
        (lambda: layers.GatedConvolution(0), "filters=0"),
        (lambda: layers.FeedForward(-1), "intermediate_dim=-1"),
        (lambda: layers.TransformerEncoderBlock(2, 0), "intermediate_dim=0"),
        (lambda: layers.ContextualizedEmbedding(5, dropout=1.0), "dropout=1.0"),
        (lambda: layers.ContextualizedEmbedding(5, token_dropout=2), "=2"),
        (lambda: layers.RoleAssignment(5, temperature=0), "temperature=0"),
        (lambda: layers.DenseAttention(3), "variant=3"),
        (lambda: layers.DenseAttention(gradient_scale="1"), "scale='1'"),
        (lambda: layers.GradientScale(None), "scale=None"),
        (lambda: layers.HybridSelfAttention(2, window=1.5), "window=1.5"),
        (
            lambda: layers.HybridSelfAttention(2, window=[1, -1]),
            r"window=\[1, -1\]",
        ),
        (lambda: layers.MultiHeadAttention(2, "0.1"), "dropout='0.1'"),
        (lambda: layers.AggregationNode(num_heads=0), "num_heads=0"),
        (lambda: layers.AggregationNode(top_index=-1), "top_index=-1"),
        (lambda: layers.LayerAggregation(num_heads=0), "num_heads=0"),
        (lambda: layers.LayerAggregation(attention_dropout=1), "dropout=1"),
        (lambda: layers.LayerDiversity(-1), "weight=-1"),
        (lambda: layers.SummaryLayer(0), "units=0"),
        (lambda: layers.WeightNormalizedDense(-3), "units=-3"),
        (lambda: layers.SurfaceFusion(num_heads=0), "num_heads=0"),
        (lambda: layers.SurfaceFusion(temperature=0), "temperature=0"),
        (lambda: layers.SurfaceFusion(weight="a"), "weight='a'"),
        (lambda: layers.ResidualConnection(layer_norm_epsilon=0), "epsilon=0"),
        (lambda: layers.SinusoidalPositionEncoding(0), "max_wavelength=0"),
        (lambda: layers.LearnedPositionEmbedding(5, -1.0), "stddev=-1.0"),
    ],
)
def test_a_wrong_number_is_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_surface_fusion_says_which_layer_it_lacks():
    with pytest.raises(ValueError, match=r"output_projection.*Dense"):
        layers.SurfaceFusion()(X, X, X)


def test_surface_fusion_says_that_it_lacks_the_embeddings():
    fusion = layers.SurfaceFusion(output_projection=keras.layers.Dense(3))
    with pytest.raises(ValueError, match="`source_embeddings` must be passed"):
        fusion(X, X)


def test_hybrid_self_attention_takes_any_width_by_default():
    """Narrow gates have one unit, wide ones D / 32."""
    for width, units in ((16, 1), (48, 1), (64, 2)):
        attention = layers.HybridSelfAttention(num_heads=4)
        attention(np.zeros((2, 5, width), "float32"))
        assert attention.squeezes[0].units == units


def test_hybrid_self_attention_refuses_the_tokens_of_another_sentence():
    attention = layers.HybridSelfAttention(num_heads=4)
    message = "`value` must have the batch and length of `query`"
    with pytest.raises(ValueError, match=message):
        attention(X, X[:, :3])
