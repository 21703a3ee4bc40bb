"""What must be true of Transformer: its size is the sum of its parts, its
arguments are checked, a slot's layer is cloned and used, and scores become
proper log-probabilities."""

import keras
import numpy as np
import pytest
from toy_slots import (
    MeanAggregation,
    MemoryByBlock,
    PeakPenalty,
    SurfaceMixture,
)

from keras_deepnmt.layers import (
    LearnedPositionEmbedding,
    MultiHeadAttention,
    SinusoidalPositionEncoding,
)
from keras_deepnmt.models import Transformer
from keras_deepnmt.zoo import create_model

VS, VT, D, F, N = 11, 13, 8, 17, 2


def small(encoder_layers=2, decoder_layers=1, **options):
    return Transformer(
        VS, VT, D, F, N, encoder_layers, decoder_layers, **options
    )


def encoder_size(key_bias):
    attention = 4 * D * D + (4 if key_bias else 3) * D
    return attention + 2 * D * F + F + D + 4 * D


def decoder_size(key_bias):
    attention = 4 * D * D + (4 if key_bias else 3) * D
    return 2 * attention + 2 * D * F + F + D + 6 * D


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options, num_weights",
    [
        ({}, VS * D + VT * D),
        ({"key_bias": True}, VS * D + VT * D),
        ({"tie_output_embedding": False}, VS * D + 2 * VT * D),
        ({"normalize_first": True}, VS * D + VT * D + 4 * D),
        ({"final_norm": True}, VS * D + VT * D + 4 * D),
        ({"normalize_first": True, "final_norm": False}, VS * D + VT * D),
        ({"position_encoding": None}, VS * D + VT * D),
        ({"output_bias": True}, VS * D + VT * D + VT),
    ],
)
def test_the_number_of_parameters_is_exact(options, num_weights):
    key_bias = options.get("key_bias", False)
    blocks = 2 * encoder_size(key_bias) + 3 * decoder_size(key_bias)
    assert small(2, 3, **options).count_params() == num_weights + blocks


def test_a_shared_matrix_is_counted_once():
    model = Transformer(VT, VT, D, F, N, 1, 1, share_embeddings=True)
    blocks = encoder_size(False) + decoder_size(False)
    assert model.count_params() == VT * D + blocks


def test_the_base_model_has_the_published_size():
    model = Transformer(VS, VT, 512, 2048, 8, 6, 6, key_bias=True)
    body = model.count_params() - (VS + VT) * 512
    # The published 44,139,008 count one more vector of width 512.
    assert body == 6 * 3_152_384 + 6 * 4_204_032 == 44_139_008 - 512


def test_the_final_norms_follow_the_stacks_of_a_post_norm_model():
    inputs = {
        "source_ids": np.array([[5, 6, 3]]),
        "target_ids": np.array([[2, 7, 8]]),
    }
    plain, model = small(), small(final_norm=True)
    named = {weight.path: weight for weight in plain.weights}
    for weight in model.weights:
        if weight.path in named:
            weight.assign(named[weight.path])
    memory = plain.encode(inputs["source_ids"])["output"]
    np.testing.assert_allclose(  # normalized once more, nothing changes
        model.encode(inputs["source_ids"])["output"], memory, atol=1e-5
    )
    model.encoder_norm.gamma.assign(3.0 * np.ones(D))
    np.testing.assert_allclose(
        model.encode(inputs["source_ids"])["output"], 3.0 * memory, atol=1e-5
    )
    logits = np.asarray(model(inputs))
    model.decoder_norm.gamma.assign(2.0 * np.ones(D))
    np.testing.assert_allclose(model(inputs), 2.0 * logits, atol=1e-5)


def test_without_encode_end_the_end_of_a_source_is_as_padding():
    model, reading = small(encode_end=False), small()
    reading.set_weights(model.get_weights())
    target = np.array([[2, 7, 8]] * 2)
    source = np.array([[5, 6, 3, 0], [5, 6, 7, 3]])
    found = model({"source_ids": source, "target_ids": target})
    source[source == 3] = 0
    expected = reading({"source_ids": source, "target_ids": target})
    np.testing.assert_allclose(found, expected, atol=1e-6)
    empty = model({"source_ids": np.array([[3]]), "target_ids": target[:1]})
    assert np.isfinite(empty).all()


def test_scores_become_normalised_log_probabilities():
    inputs = {
        "source_ids": np.array([[5, 6, 3, 0]]),
        "target_ids": np.array([[2, 7, 8]]),
    }
    for options in ({}, {"output_fusion": SurfaceMixture()}):
        model = small(**options)
        log_probs = np.asarray(model.log_probs(model(inputs)))
        assert log_probs.shape == (1, 3, VT)
        np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)


def test_a_fusion_of_another_number_of_memories_is_refused():
    with pytest.raises(ValueError, match="one .* for each decoder block"):
        small(2, 3, encoder_fusion=MemoryByBlock(2))


def test_a_slot_clones_its_layer_once_for_each_block():
    prototype = MultiHeadAttention(1, name="prototype")
    model = small(2, 1, encoder_self_attention=prototype)
    attentions = [block.attention for block in model.encoder_blocks]
    assert [attention.num_heads for attention in attentions] == [1, 1]
    assert attentions[0] is not attentions[1]
    assert attentions[0].weights[0] is not attentions[1].weights[0]
    assert model.decoder_blocks[0].attention.num_heads == N
    assert not prototype.built


def test_a_clone_takes_the_policy_of_the_model_unless_it_was_given_one():
    plain = small(dtype="mixed_bfloat16", encoder_aggregation=MeanAggregation())
    assert plain.encoder_aggregation.dtype_policy.name == "mixed_bfloat16"
    chosen = MeanAggregation(dtype="float64")
    model = small(dtype="mixed_bfloat16", encoder_aggregation=chosen)
    assert model.encoder_aggregation.dtype_policy.name == "float64"


def test_a_diversity_layer_adds_the_loss_of_each_side():
    model = small(2, 2, layer_diversity=PeakPenalty())
    inputs = {
        "source_ids": np.array([[5, 6, 3]]),
        "target_ids": np.array([[2, 7]]),
    }
    model(inputs, training=True)
    assert len(model.losses) == 2
    assert all(float(loss) > 0 for loss in model.losses)


def test_without_position_encoding_the_source_has_no_order():
    source = np.array([[5, 6, 7, 3], [7, 5, 3, 6]])
    target = np.array([[2, 8]] * 2)
    for position_encoding in ("sinusoidal", None):
        model = small(position_encoding=position_encoding)
        scores = model({"source_ids": source, "target_ids": target})
        same = np.allclose(scores[0], scores[1], atol=1e-5)
        assert same == (position_encoding is None)


@pytest.mark.parametrize("tie", [True, False])
def test_the_bias_is_added_to_the_logits_of_all_tokens_and_of_some(tie):
    model = small(output_bias=True, tie_output_embedding=tie)
    states = np.random.default_rng(0).normal(size=(3, 1, D)).astype("float32")
    before = np.asarray(model.project(states))
    bias = np.linspace(-2, 5, VT, dtype="float32")
    model.output_bias.bias.assign(bias)
    expected = before + bias
    some = np.array([7, 3])
    for found, tokens in (
        (model.project(states), slice(None)),
        (model.projection_to(some)(states), some),
        ((model.repeated_projection(3) or model.project)(states), slice(None)),
    ):
        np.testing.assert_allclose(
            np.asarray(found), expected[..., tokens], rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize(
    "given",
    [
        SinusoidalPositionEncoding(100.0),
        {"SinusoidalPositionEncoding": {"max_wavelength": 100.0}},
    ],
    ids=["layer", "by name"],
)
def test_positions_are_those_of_the_given_layer(given):
    model = small(position_encoding=given)
    x = np.zeros((1, 5, D), "float32")
    np.testing.assert_array_equal(
        model.position_encoding(x), SinusoidalPositionEncoding(100.0)(x)
    )
    again = Transformer.from_config(model.get_config())
    assert again.position_encoding.max_wavelength == 100.0


LEARNED = {"LearnedPositionEmbedding": {"add_to_inputs": True}}


@pytest.mark.thorough
@pytest.mark.parametrize("shared", [True, False])
def test_learned_positions_may_be_those_of_one_side_or_of_both(shared):
    model = small(position_encoding=LEARNED, share_position_encoding=shared)
    inputs = {
        "source_ids": np.array([[5, 6, 3]]),
        "target_ids": np.array([[2, 7, 8]]),
    }
    memory = np.asarray(model.encode(inputs["source_ids"])["output"])
    logits = np.asarray(model(inputs))
    table = model.target_position_encoding.table.embeddings
    assert table.shape == (model.max_length, D)
    table.assign(np.flip(np.asarray(table), 0))
    found = np.asarray(model.encode(inputs["source_ids"])["output"])
    assert np.array_equal(found, memory) == (not shared)
    assert np.abs(np.asarray(model(inputs)) - logits).max() > 1e-3
    # Step by step as all at once.
    memory = model.encode(inputs["source_ids"])
    cache = model.init_cache(memory, 3)
    for step in range(3):
        ids = inputs["target_ids"][:, step : step + 1]
        scores, cache = model.decode(ids, memory, cache, step)
    np.testing.assert_allclose(
        scores[:, 0], np.asarray(model(inputs))[:, -1], atol=1e-5
    )


def test_embeddings_have_the_given_scale():
    inputs = {
        "source_ids": np.array([[5, 6, 3]]),
        "target_ids": np.array([[2, 7, 8]]),
    }
    plain = small(tie_output_embedding=False)
    model = small(tie_output_embedding=False, embedding_scale=3.0)
    model.set_weights(plain.get_weights())
    for embedding in (model.source_embedding, model.target_embedding):
        embedding.embeddings.assign(embedding.embeddings * D**0.5 / 3.0)
    np.testing.assert_allclose(model(inputs), plain(inputs), atol=1e-5)


def test_a_layer_that_returns_positions_alone_is_refused():
    # It would be broadcast over nothing, and fail in the first attention.
    with pytest.raises(ValueError, match="LearnedPositionEmbedding, which ret"):
        small(position_encoding=LearnedPositionEmbedding(32))


def test_it_is_a_functional_model_with_named_inputs():
    model = small()
    assert sorted(model.input) == ["source_ids", "target_ids"]
    for name, symbol in model.input.items():
        assert symbol.shape == (None, None)
        assert keras.backend.standardize_dtype(symbol.dtype) == "int32"
        assert symbol.name == name
    assert model.output.shape == (None, None, VT)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"position_encoding": "learned"}, '`: "learned" is not a'),
        ({"share_embeddings": True}, "target_vocabulary_size=13"),
        ({"max_length": 0}, "max_length=0"),
        ({"encoder_aggregation": "mean"}, '"mean" is not a layer'),
        ({"dropout": 1.0}, "dropout=1.0"),
    ],
)
def test_refuses_arguments_that_cannot_work(options, words):
    with pytest.raises(ValueError, match=words):
        small(**options)


def test_refuses_heads_that_do_not_divide_the_width():
    with pytest.raises(ValueError, match="num_heads=3"):
        Transformer(VS, VT, D, F, 3, 1, 1)


@pytest.mark.parametrize("preset", ["transformer_tiny", "conv_seq2seq_tiny"])
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_stack_that_cannot_be_built_is_refused_at_once(preset, stack):
    name = f"num_{stack}_layers"
    with pytest.raises(ValueError, match=f"`{name}` must be at most 1,000"):
        create_model(preset, 11, 11, **{name: 10**9})
