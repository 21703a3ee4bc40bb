"""What must be true of relative positions in attention layers: attention is
that of the layer of positions, only distances count, steps with a cache equal
all positions at once, and cross-attention is refused."""

import numpy as np
import pytest

from keras_deepnmt.layers import (
    AttentionLinearBiases,
    HybridSelfAttention,
    MultiHeadAttention,
    RelativePositionBias,
    RelativePositionRepresentations,
    RotaryPositionEmbedding,
)

B, T, N, H, K = 3, 5, 2, 6, 3
D = N * H

POSITIONS = [
    RotaryPositionEmbedding(10.0),
    AttentionLinearBiases(),
    RelativePositionRepresentations(2),
    RelativePositionBias(4, 3, bidirectional=False),
]
ATTENTIONS = {
    "plain": MultiHeadAttention,
    "one key": lambda n, **options: MultiHeadAttention(
        n, num_key_value_heads=1, **options
    ),
    **{
        f"hybrid, {fusion}": lambda n, fusion=fusion, **options: (
            HybridSelfAttention(
                n,
                branches=("forward", "local"),
                window=1,
                fusion=fusion,
                gate_reduction=1,
                **options,
            )
        )
        for fusion in ("sum", "concat", "gated_sum")
    },
}
of_every_kind = pytest.mark.parametrize(
    "position", POSITIONS, ids=lambda layer: type(layer).__name__
)


def built(position, kind="plain", **options):
    layer = ATTENTIONS[kind](N, relative_position=position, **options)
    layer.build((B, T, D))
    random = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape) * 0.5)
    return layer


def queries(rows=B, length=T):
    random = np.random.default_rng(0)
    return random.normal(size=(rows, length, D)).astype("float32")


@of_every_kind
@pytest.mark.parametrize("kind", ["plain", "one key"])
def test_attention_is_that_of_the_layer_of_positions(position, kind):
    layer = built(position, kind)
    x = queries()
    projected = [
        # A key that all heads have is repeated.
        np.asarray(getattr(layer, f"{name}_projection")(x))
        .reshape(B, T, -1, H)
        .transpose(0, 2, 1, 3)
        + np.zeros((B, N, T, H), "float32")
        for name in ("query", "key", "value")
    ]
    context = np.asarray(layer.position(*projected)).transpose(0, 2, 1, 3)
    expected = layer.output_projection(context.reshape(B, T, D))
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)
    without = ATTENTIONS[kind](N)
    without.build(x.shape)
    without.set_weights(layer.get_weights()[: len(without.weights)])
    assert np.abs(np.asarray(without(x)) - expected).max() > 1e-2


@of_every_kind
def test_only_distances_count(position):
    layer = built(position)
    x, later = queries(), np.concatenate([queries(length=4), queries()], 1)
    mask = np.arange(T + 4)[None, None] >= 4  # hides what comes before
    np.testing.assert_allclose(
        layer(later, attention_mask=mask)[:, 4:], layer(x), atol=1e-5
    )


@of_every_kind
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_cached_equals_uncached(position, kind):
    layer = built(position, kind)
    x = queries(B * K)  # of K hypotheses, whose cache has slots for all
    expected = np.asarray(layer(x, use_causal_mask=True))
    cache = layer.init_cache(B, T + 2, K)
    for t in range(T):
        output, cache = layer(x[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)


def test_cross_attention_is_refused():
    layer = built(AttentionLinearBiases())
    x, memory = queries(), queries(length=T + 1)
    with pytest.raises(ValueError, match="must have the batch and length"):
        layer(x, memory)
    with pytest.raises(ValueError, match="AttentionLinearBiases compares"):
        layer.static_cache(memory)
    cache = MultiHeadAttention(N)
    cache.build(x.shape)
    with pytest.raises(ValueError, match="without `relative_position`"):
        layer(x, cache=cache.static_cache(memory))
