"""What must be true of the encoder and decoder blocks: they are the boxes of
Figure 1 made of the layers proven elsewhere, masks reach their attention,
caches change nothing, and their sizes are as published."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import (
    MultiHeadAttention,
    MultiLayerAttention,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)

B, T, S, N, F, K = 3, 5, 7, 2, 11, 3
D = 8


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def as_array(tensor):
    return np.asarray(tensor)


@pytest.fixture
def source_mask():
    return np.arange(S) < np.array([[7], [4], [2]])


@pytest.mark.parametrize("normalize_first", [False, True])
def test_encoder_block_is_figure_1(source_mask, normalize_first):
    block = TransformerEncoderBlock(N, F, normalize_first=normalize_first)
    x = values(B, S, D)
    output = block(x, padding_mask=source_mask)
    mask = source_mask[:, None, :]
    one, two = block.attention_residual, block.feed_forward_residual
    c = one(x, block.attention(one.before(x), attention_mask=mask))
    expected = two(c, block.feed_forward(two.before(c)))
    np.testing.assert_allclose(output, expected, atol=1e-6)


@pytest.mark.parametrize("normalize_first", [False, True])
def test_decoder_block_is_figure_1(source_mask, normalize_first):
    block = TransformerDecoderBlock(N, F, normalize_first=normalize_first)
    x, memory = values(B, T, D), values(B, S, D, seed=1)
    output = block(x, memory, memory_padding_mask=source_mask)
    mask = source_mask[:, None, :]
    one, two = block.attention_residual, block.cross_attention_residual
    three = block.feed_forward_residual
    c = one(x, block.attention(one.before(x), use_causal_mask=True))
    d = two(c, block.cross_attention(two.before(c), memory, memory, mask))
    expected = three(d, block.feed_forward(three.before(d)))
    np.testing.assert_allclose(output, expected, atol=1e-6)


def test_padding_cannot_be_seen(source_mask):
    changed = np.where(source_mask[..., None], values(B, S, D), 1e2)
    encoder = TransformerEncoderBlock(N, F)
    before = encoder(values(B, S, D), padding_mask=source_mask)
    after = encoder(changed, padding_mask=source_mask)
    np.testing.assert_allclose(
        as_array(after)[source_mask], as_array(before)[source_mask], atol=1e-5
    )
    decoder = TransformerDecoderBlock(N, F)
    x = values(B, T, D, seed=1)
    np.testing.assert_allclose(
        decoder(x, changed, memory_padding_mask=source_mask),
        decoder(x, values(B, S, D), memory_padding_mask=source_mask),
        atol=1e-5,
    )


def test_future_cannot_be_seen():
    block = TransformerDecoderBlock(N, F)
    x, memory = values(B, T, D), values(B, S, D, seed=1)
    before = as_array(block(x, memory))
    changed = x.copy()
    changed[:, 3:] = 1e2
    after = as_array(block(changed, memory))
    np.testing.assert_allclose(after[:, :3], before[:, :3], atol=1e-5)


@pytest.mark.parametrize("given", [values(B, T, D), keras.Input((T, D))])
def test_a_decoder_block_refuses_to_do_without_memory(given):
    # Its cross-attention would read the future of the target.
    block = TransformerDecoderBlock(N, F)
    with pytest.raises(ValueError, match="`memory`.*memory=None"):
        block(given)


def test_cached_equals_uncached_with_beams(source_mask):
    block = TransformerDecoderBlock(N, F)
    memory = values(B, S, D)
    x = values(B * K, T, D, seed=1)
    expected = as_array(
        block(
            x,
            np.repeat(memory, K, axis=0),
            memory_padding_mask=np.repeat(source_mask, K, axis=0),
        )
    )
    static = block.static_cache(memory)
    cache = block.init_cache(B * K, T)
    for t in range(T):
        output, cache = block(
            x[:, t : t + 1],
            memory_padding_mask=source_mask,
            static_cache=static,
            cache=cache,
            cache_index=t,
        )
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)


def test_another_attention_takes_the_place(source_mask):
    prototype = MultiHeadAttention(1, use_bias=False)
    block = TransformerEncoderBlock(
        N, F, self_attention=prototype, attention_dropout=0.5, key_bias=True
    )
    block(values(B, S, D), padding_mask=source_mask)
    assert block.attention.num_heads == 1  # it keeps its own options
    assert block.attention.attention_dropout == 0.0
    assert not block.attention.key_bias
    assert not block.attention.use_bias
    assert block.attention is not prototype
    assert not prototype.weights


@pytest.mark.parametrize("key_bias", [False, True])
def test_the_number_of_parameters_is_exact(key_bias):
    attention = 4 * D * D + (4 if key_bias else 3) * D
    feed_forward = 2 * D * F + F + D
    encoder = TransformerEncoderBlock(N, F, key_bias=key_bias)
    encoder.build((B, S, D))
    assert encoder.count_params() == attention + feed_forward + 4 * D
    decoder = TransformerDecoderBlock(N, F, key_bias=key_bias)
    decoder.build((B, T, D), (B, S, D))
    assert decoder.count_params() == 2 * attention + feed_forward + 6 * D


def test_blocks_of_the_base_model_have_the_published_size():
    encoder = TransformerEncoderBlock(8, 2048, key_bias=True)
    encoder.build((None, None, 512))
    assert encoder.count_params() == 3_152_384
    decoder = TransformerDecoderBlock(8, 2048, key_bias=True)
    decoder.build((None, None, 512))
    assert decoder.count_params() == 4_204_032


def test_a_block_asks_for_the_states_that_its_attention_reads():
    block = TransformerEncoderBlock(N, F, MultiLayerAttention(N, 3))
    with pytest.raises(ValueError, match="`layer_states`.* 2 blocks .*None"):
        block(values(B, S, D))


def test_a_slot_refuses_a_layer_that_has_weights():
    used = MultiHeadAttention(N)
    used.build((B, S, D))
    with pytest.raises(ValueError, match="unbuilt"):
        TransformerEncoderBlock(N, F, self_attention=used)


@keras.saving.register_keras_serializable("test_transformer_blocks")
class OneDense(keras.layers.Layer):
    """A layer of others, which knows nothing of initial kernels."""

    def build(self, query_shape):
        self.dense = keras.layers.Dense(D, use_bias=False)
        self.dense.build(query_shape)

    def call(self, query, attention_mask=None):
        return self.dense(query)


def test_the_kernels_of_other_layers_are_drawn_too():
    block = TransformerEncoderBlock(
        N, F, self_attention=OneDense(), kernel_initializer="ones"
    )
    block.build((B, S, D))
    np.testing.assert_array_equal(block.attention.dense.kernel, np.ones((D, D)))


def test_a_slot_refuses_what_is_no_layer():
    with pytest.raises(ValueError, match="Received: 'attention'"):
        TransformerEncoderBlock(N, F, self_attention="attention")


def test_a_block_is_frozen_once_it_is_built():
    inputs = keras.Input((None, D))
    block = TransformerEncoderBlock(N, F)
    model = keras.Model(inputs, block(inputs))
    block.trainable = False
    assert model.trainable_weights == []
    # As README.md of the layers says.
    clone = keras.models.clone_model(model)
    clone.layers[-1].trainable = True
    clone.layers[-1].trainable = False
    assert clone.trainable_weights == []
