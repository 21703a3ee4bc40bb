"""What must be true of the analyses of fused encoder layers: a cell of the
heat map is a mean over channels and a column sums to one; masking a layer
takes its weight alone, leaves the encoder and the model as they are; and a
model that reads the top alone is the plain one."""

import numpy as np
import pytest

import keras_deepnmt
from keras_deepnmt.analysis import layer_attention_heat_map, mask_encoder_layer
from keras_deepnmt.layers import FineGrainedLayerAttention

N, M = 2, 1
SOURCE_IDS = np.array([[5, 6, 7, 8, 3], [9, 4, 3, 0, 0]], "int32")
TARGET_IDS = np.array([[2, 5, 6, 7], [2, 8, 0, 0]], "int32")


def make(fusion):
    return keras_deepnmt.create_model(
        "transformer_base",
        11,
        13,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
        num_encoder_layers=N,
        num_decoder_layers=M,
        encoder_fusion=fusion,
    )


@pytest.fixture(scope="module")
def fused():
    model = make(FineGrainedLayerAttention(M))
    random = np.random.default_rng(0)
    model.set_weights(
        [w + 0.3 * random.normal(size=w.shape) for w in model.get_weights()]
    )
    return model


@pytest.fixture(scope="module")
def plain():
    return make(None)


@pytest.fixture(scope="module")
def masked(fused):
    return mask_encoder_layer(fused, 0)


def scores(model):
    return np.asarray(model.decode(TARGET_IDS, model.encode(SOURCE_IDS)))


def test_a_cell_is_the_mean_over_channels(fused):
    heat_map = layer_attention_heat_map(fused.encoder_fusion)
    assert heat_map.shape == (N + 1, M)
    logits = np.asarray(fused.encoder_fusion.layer_logits)
    for m in range(M):
        exponents = np.exp(logits[m])  # (N + 1, D)
        for n in range(N + 1):
            expected = (exponents[n] / exponents.sum(axis=0)).mean()
            np.testing.assert_allclose(heat_map[n, m], expected, atol=1e-6)


def test_a_column_sums_to_one(fused):
    heat_map = layer_attention_heat_map(fused.encoder_fusion)
    np.testing.assert_allclose(heat_map.sum(axis=0), 1.0, atol=1e-6)


def test_masking_takes_the_weight_of_one_layer(fused, masked):
    expected = np.array(fused.encoder_fusion.layer_weights())
    expected[:, 0] = 0.0
    np.testing.assert_array_equal(
        masked.encoder_fusion.layer_weights(), expected
    )
    assert not np.allclose(scores(masked), scores(fused))
    np.testing.assert_array_equal(
        masked.encode(SOURCE_IDS)["output"], fused.encode(SOURCE_IDS)["output"]
    )


@pytest.mark.thorough
def test_masking_again_adds_a_layer_and_may_renormalize(fused, masked):
    twice = mask_encoder_layer(masked, 2, renormalize=True)
    weights = np.array(fused.encoder_fusion.layer_weights())
    weights[:, [0, 2]] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        twice.encoder_fusion.layer_weights(), weights, atol=1e-6
    )


def test_all_mass_on_the_top_is_the_plain_model_and_can_lose_the_others(
    fused, masked, plain
):
    logits = np.zeros(fused.encoder_fusion.layer_logits.shape)
    logits[:, N] = 1e4
    weights = fused.get_weights()
    fused.encoder_fusion.layer_logits.assign(logits)
    top_only = scores(fused)
    by_path = {weight.path: weight for weight in fused.weights}
    for weight in plain.weights:
        weight.assign(by_path[weight.path])
    fused.set_weights(weights)
    np.testing.assert_allclose(scores(plain), top_only, atol=1e-6)
    assert not np.allclose(scores(fused), top_only)
    before = masked.encoder_fusion.layer_logits.numpy()
    masked.encoder_fusion.layer_logits.assign(logits)
    np.testing.assert_array_equal(scores(masked), top_only)
    masked.encoder_fusion.layer_logits.assign(before)


def test_refuses_a_layer_that_does_not_exist(fused):
    with pytest.raises(ValueError, match="and 2, the top.*number=3"):
        mask_encoder_layer(fused, N + 1)


def test_refuses_a_model_without_layer_attention(plain):
    with pytest.raises(ValueError, match="FineGrainedLayerAttention.*None"):
        mask_encoder_layer(plain, 0)
