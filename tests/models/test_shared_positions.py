"""What must be true of position biases that the attentions of a stack share.

* all self-attentions of a stack have one table, and each stack its own
* logits are those of the equation with that table, in every block
* its gradient is the sum of those of tables that are not shared
* a decoding step with a cache gives the scores of all at once
* saved models have it again, and those of before keep a table for each
  attention
"""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt import create_model
from keras_deepnmt.layers import (
    HybridSelfAttention,
    LayerAggregation,
    MultiHeadAttention,
    MultiLayerAttention,
    RelativePositionBias,
    TransformerEncoderBlock,
)
from keras_deepnmt.models import Transformer

BUCKETS, N, D = 6, 2, 8
INPUTS = {
    "source_ids": np.array([[5, 6, 7, 8, 3], [6, 4, 3, 0, 0]]),
    "target_ids": np.array([[2, 5, 6, 7], [2, 9, 4, 0]]),
}


def small(shared=True, num_decoder_layers=2, **options):
    keras.utils.set_random_seed(1)
    model = Transformer(
        11,
        13,
        D,
        16,
        N,
        2,
        num_decoder_layers,
        position_encoding=RelativePositionBias(BUCKETS, 5, shared=shared),
        dropout=0.0,
        **options,
    )
    random = np.random.default_rng(0)
    for table in tables(model):
        table.assign(random.normal(size=table.shape))
    return model


@pytest.fixture(scope="module")
def model():
    return small()


@pytest.fixture(scope="module")
def separate():
    """A model of the same sizes, whose attentions have a table each."""
    return small(shared=False)


def tables(model):
    return [weight for weight in model.weights if weight.name == "table"]


def others(model):
    return [weight for weight in model.weights if weight.name != "table"]


def positions(model):
    return {
        layer.path: layer.position
        for layer in model._flatten_layers()
        if isinstance(layer, MultiHeadAttention) and layer.position is not None
    }


def test_all_attentions_of_a_stack_share_one_table():
    hybrid = HybridSelfAttention(N, branches=("forward", "local"))
    aggregation = LayerAggregation(
        "iterative", function="attention", num_heads=N
    )
    model = small(
        encoder_self_attention=hybrid,
        decoder_self_attention=MultiLayerAttention(
            N, attention=hybrid, function="attention"
        ),
        num_decoder_layers=3,
        encoder_aggregation=aggregation,
    )
    found = positions(model)
    # 2 blocks and a node; 2 blocks, and one with 2 layers below and a node.
    assert len(found) == 3 + 2 + 3
    by_stack = {"encoder": set(), "decoder": set()}
    for path, position in found.items():
        by_stack[path[:7]].add(position)
    (encoder,), (decoder,) = by_stack.values()
    assert encoder is not decoder
    assert (encoder.bidirectional, decoder.bidirectional) == (True, False)
    assert [table.shape for table in tables(model)] == 2 * [(BUCKETS, N)]


def test_one_table_a_stack_is_all_that_is_added(model, separate):
    sizes = {
        name: one.count_params() - sum(math.prod(w.shape) for w in others(one))
        for name, one in {"shared": model, "separate": separate}.items()
    }
    assert sizes == {"shared": 2 * BUCKETS * N, "separate": 4 * BUCKETS * N}


def test_attention_in_every_block_is_that_of_the_equation(model):
    table = np.asarray(tables(model)[0])
    x = np.random.default_rng(1).normal(size=(1, 4, D)).astype("float32")
    for block in model.encoder_blocks:
        attention = block.attention
        _, scores = attention(x, return_attention_scores=True)
        queries, keys = (
            (x @ projection.kernel.numpy()).reshape(4, N, D // N)
            + bias.reshape(N, D // N)
            for projection, bias in (
                (
                    attention.query_projection,
                    attention.query_projection.bias.numpy(),
                ),
                (attention.key_projection, np.zeros(D)),
            )
        )
        for n in range(N):
            logits = queries[:, n] @ keys[:, n].T / np.sqrt(D // N)
            for t in range(4):
                for s in range(4):
                    bucket = attention.position.bucket(s - t)
                    logits[t, s] += table[bucket, n]
            weights = np.exp(logits)
            weights /= weights.sum(axis=-1, keepdims=True)
            np.testing.assert_allclose(scores[0, n], weights, atol=1e-5)


def gradients(model, training):
    with tf.GradientTape() as tape:
        scores = model(INPUTS, training=training)
        loss = tf.reduce_sum(tf.sin(scores))
    found = tape.gradient(loss, [table.value for table in tables(model)])
    return [tf.convert_to_tensor(one).numpy() for one in found]


def test_its_gradient_is_the_sum_over_the_blocks(separate):
    model = small()
    for path, position in positions(separate).items():
        position.table.assign(positions(model)[path].table)
    for one, other in zip(others(separate), others(model), strict=True):
        one.assign(other)
    np.testing.assert_allclose(
        model(INPUTS), separate(INPUTS), rtol=0, atol=1e-5
    )
    each = gradients(separate, training=False)
    expected = [sum(each[:2]), sum(each[2:])]
    model.compile("sgd", activation_checkpointing=True)
    # Blocks that are computed a second time as well.
    for training in (False, True):
        found = gradients(model, training)
        for one, other in zip(found, expected, strict=True):
            assert np.abs(other).max() > 1e-3
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_step_with_a_cache_gives_the_scores_of_all_at_once(model):
    memory = model.encode(INPUTS["source_ids"])
    expected = np.asarray(model.decode(INPUTS["target_ids"], memory))
    cache = model.init_cache(memory, max_length=5)
    for t in range(4):
        ids = INPUTS["target_ids"][:, t : t + 1]
        scores, cache = model.decode(ids, memory, cache, t)
        np.testing.assert_allclose(
            scores[:, 0], expected[:, t], rtol=0, atol=1e-5
        )


def test_a_saved_model_has_it_again(model, tmp_path):
    expected = np.asarray(model(INPUTS))
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert len(tables(loaded)) == len(set(positions(loaded).values())) == 2
    np.testing.assert_array_equal(loaded(INPUTS), expected)
    loaded.set_weights([0 * weight for weight in loaded.get_weights()])
    loaded.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(loaded(INPUTS), expected)


def test_models_of_before_keep_a_table_for_each_attention(separate):
    config = separate.get_config()
    # As it was written before there was the option.
    assert config["position_encoding"]["config"].pop("shared") is False
    assert len(tables(Transformer.from_config(config))) == 2 + 2
    # The preset shares them, as the paper does.
    assert len(tables(preset())) == 2
    assert len(tables(preset(shared=False))) == 3


def preset(**overrides):
    sizes = {"num_encoder_layers": 2, "num_decoder_layers": 1}
    return create_model(
        "transformer_t5_bias_tiny", 11, 13, **sizes, **overrides
    )


def test_layers_share_one_that_they_are_given_built():
    layer = RelativePositionBias(BUCKETS, 5)
    layer.build((None, N, None, D // N))
    block = TransformerEncoderBlock(N, 16, relative_position=layer)
    attention = MultiHeadAttention(N, relative_position=layer)
    for user in (block, attention):
        user(np.zeros((1, 3, D), "float32"))
    assert block.attention.position is attention.position is layer
    # Alone, a copy of one of them has a table of its own.
    copy = MultiHeadAttention.from_config(attention.get_config())
    copy(np.zeros((1, 3, D), "float32"))
    assert copy.position is not layer and copy.position.num_buckets == BUCKETS


def test_attentions_with_other_heads_are_refused():
    with pytest.raises(ValueError, match="encoder_position: 2. .*num_heads=4"):
        small(encoder_self_attention=MultiHeadAttention(4))
