"""What must be true of masks that Keras attaches to tensors, as it does after
`Embedding(mask_zero=True)`: every layer takes them as it takes explicit ones,
hands them on, and gives real tokens what they get without padding."""

import keras
import numpy as np
import pytest

from keras_deepnmt import layers

IDS = np.array([[4, 7, 2, 5, 3], [6, 8, 3, 0, 0]])
NUM_REAL = 3  # tokens of the second sentence
D = 8


def one(layer):
    return lambda x: layer(x)


def two(layer):
    return lambda x: layer(x, x)


def three(layer):
    return lambda x: layer(x, x, x)


def states(layer):
    return lambda x: layer([x * 0.5, x])


def first_output(layer):
    return lambda x: layer([x, x * 0.5])[0]


def with_states(layer):
    return lambda x, **options: layer(x, [x, x * 1.0], **options)


def with_encoder(layer):
    return lambda x: layer(x, x, [x, x], x)


# Each layer with the arguments that its user passes.
CALLS = {
    "multi-head attention": one(layers.MultiHeadAttention(2)),
    "multi-head attention to a memory": two(layers.MultiHeadAttention(2)),
    "hybrid self-attention": one(layers.HybridSelfAttention(2)),
    "multi-layer attention": with_states(layers.MultiLayerAttention(2)),
    "multi-layer attention, attention node": with_states(
        layers.MultiLayerAttention(2, function="attention")
    ),
    "encoder block": one(layers.TransformerEncoderBlock(2, 8)),
    "pre-norm encoder block": one(
        layers.TransformerEncoderBlock(2, 8, normalize_first=True)
    ),
    "encoder block with hybrid self-attention": one(
        layers.TransformerEncoderBlock(
            2, 8, self_attention=layers.HybridSelfAttention(2)
        )
    ),
    "decoder block": two(layers.TransformerDecoderBlock(2, 8)),
    "role interaction": one(layers.RoleInteraction(3)),
    "role interaction of a convolution": one(
        layers.RoleInteraction(3, role_encoder="cnn")
    ),
    "contextualized embedding": one(layers.ContextualizedEmbedding(3)),
    "role assignment": one(layers.RoleAssignment(3, "softmax")),
    "gated convolution": one(layers.GatedConvolution(D)),
    "convolutional encoder block": first_output(
        layers.ConvEncoderBlock(D, "dense")
    ),
    "dense attention": with_encoder(layers.DenseAttention()),
    "dense aggregation": states(layers.LayerAggregation("dense")),
    "hierarchical aggregation by attention": states(
        layers.LayerAggregation(
            "hierarchical", function="attention", num_heads=2
        )
    ),
    "linear aggregation": states(layers.LayerAggregation("linear")),
    "fine-grained layer attention": first_output(
        layers.FineGrainedLayerAttention(2)
    ),
    "layer diversity": states(layers.LayerDiversity()),
    "surface fusion": three(
        layers.SurfaceFusion(output_projection=keras.layers.Dense(5))
    ),
    "surface fusion of the mean": three(
        layers.SurfaceFusion(
            surface="mean", output_projection=keras.layers.Dense(5)
        )
    ),
    "feed-forward network": one(layers.FeedForward(8)),
    "residual connection": two(layers.ResidualConnection()),
    "sinusoidal positions": one(layers.SinusoidalPositionEncoding()),
    "learned positions": one(
        layers.LearnedPositionEmbedding(9, add_to_inputs=True)
    ),
    "shared keys with linear biases": one(
        layers.MultiHeadAttention(
            4,
            relative_position=layers.AttentionLinearBiases(),
            num_key_value_heads=2,
        )
    ),
    "average attention": one(layers.AverageAttention(8)),
    "recurrent unit": one(layers.SimplerSimpleRecurrentUnit()),
    "DeepNorm": two(layers.DeepNorm("decoder", 3, 2)),
    "layer drop": two(layers.LayerDrop()),
}


@pytest.fixture(scope="module")
def embedding():
    return keras.layers.Embedding(9, D, mask_zero=True)


@pytest.mark.parametrize("name", CALLS)
def test_padding_marked_by_keras_changes_no_real_token(name, embedding):
    """The sentence with padding gets what the shorter sentence gets."""
    call = CALLS[name]
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, call(embedding(inputs)))
    padded = np.asarray(model(IDS))[1, :NUM_REAL]
    alone = np.asarray(model(IDS[1:, :NUM_REAL]))[0]
    np.testing.assert_allclose(padded, alone, atol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        layers.MultiHeadAttention(2),
        layers.HybridSelfAttention(2),
        layers.TransformerEncoderBlock(2, 8),
        layers.RoleEncoder(3),
        layers.RoleAssignment(3, role_encoder="cnn"),
        layers.ContextualizedEmbedding(3, role_encoder="cnn"),
        layers.RoleInteraction(3, role_encoder="cnn"),
        layers.GatedConvolution(D),
        layers.AverageAttention(8),
        layers.SimplerSimpleRecurrentUnit(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_padding_within_time_steps_changes_no_real_token(layer, embedding):
    """`TimeDistributed` hands on the mask as the argument `mask` alone."""
    inputs = keras.Input((2, None), dtype="int32")
    outputs = keras.layers.TimeDistributed(layer)(embedding(inputs))
    model = keras.Model(inputs, outputs)
    padded = np.asarray(model(IDS[None]))[0, 1, :NUM_REAL]
    alone = np.asarray(layer(embedding(IDS[1:, :NUM_REAL])))[0]
    np.testing.assert_allclose(padded, alone, atol=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_the_output_carries_the_mask_of_the_input(name, embedding):
    """A layer of Keras that follows knows which tokens are real."""
    pooling = keras.layers.GlobalAveragePooling1D()
    output = CALLS[name](embedding(IDS))
    mean = np.asarray(pooling(output))[1]
    expected = np.asarray(output)[1, :NUM_REAL].mean(axis=0)
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-5)


def test_a_mask_of_keras_equals_an_explicit_mask(embedding):
    attention = layers.HybridSelfAttention(2)
    x = embedding(IDS)
    plain = keras.ops.convert_to_tensor(np.asarray(x))
    implicit = attention(x)
    explicit = attention(plain, attention_mask=(IDS != 0)[:, None, :])
    np.testing.assert_array_equal(implicit, explicit)


def test_an_explicit_mask_and_one_of_keras_both_hold(embedding):
    attention = layers.MultiHeadAttention(2)
    first_only = np.zeros((2, 1, 5), bool)
    first_only[..., :4] = True
    _, weights = attention(
        embedding(IDS),
        attention_mask=first_only,
        return_attention_scores=True,
    )
    weights = np.asarray(weights)
    assert (weights[0, ..., 4:] == 0).all() and (weights[0, ..., :4] > 0).all()
    assert (weights[1, ..., 3:] == 0).all() and (weights[1, ..., :3] > 0).all()


@pytest.mark.parametrize(
    "layer",
    [
        layers.MultiHeadAttention(2),
        layers.HybridSelfAttention(2),
        with_states(layers.MultiLayerAttention(2, function="attention")),
    ],
)
def test_an_attention_mask_may_be_that_of_all_sentences(layer):
    mask = np.tri(5, dtype=bool)
    states = np.random.default_rng(0).normal(size=(2, 5, D)).astype("float32")
    expected = layer(states, attention_mask=np.stack([mask, mask]))
    found = layer(states, attention_mask=mask)
    np.testing.assert_allclose(found, expected, atol=1e-6)
