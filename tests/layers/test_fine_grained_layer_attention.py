"""What must be true of FineGrainedLayerAttention: it is its equation, weights
sum to one over the states and number what the paper counts, one state alone
can be chosen, DropConnect zeroes before the softmax and in training only, a
masked state has no weight, and positions stay apart."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import FineGrainedLayerAttention

B, S, D, M, N = 3, 5, 11, 2, 6


@pytest.fixture
def layer_states():
    random = np.random.default_rng(0)
    return [
        random.normal(size=(B, S, D)).astype("float32") for _ in range(N + 1)
    ]


def built(**kwargs):
    layer = FineGrainedLayerAttention(M, **kwargs)
    layer.build([(B, S, D)] * (N + 1))
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=w.shape) for w in layer.weights])
    return layer


def weights_of(layer):
    logits = np.asarray(layer.layer_logits)
    logits = np.broadcast_to(logits.reshape(M, N + 1, -1), (M, N + 1, D))
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def reference(layer_states, weights):
    memories = []
    for m in range(M):
        memory = np.zeros((B, S, D))
        for n in range(N + 1):
            for d in range(D):
                memory[:, :, d] += weights[m, n, d] * layer_states[n][:, :, d]
        memories.append(memory)
    return memories


def weights_in_training(layer):
    """Reads the weights off states that are ones in one sentence each."""
    sentences = np.eye(N + 1, dtype="float32")
    states = [np.tile(row[:, None, None], (1, S, D)) for row in sentences]
    memories = np.stack(layer(states, training=True))  # (M, N + 1, S, D)
    np.testing.assert_allclose(memories, memories[:, :, :1].repeat(S, 2))
    return memories[:, :, 0]


@pytest.mark.parametrize("granularity", ["fine", "scalar"])
def test_matches_the_equation(layer_states, granularity):
    layer = built(granularity=granularity)
    weights = weights_of(layer)
    np.testing.assert_allclose(layer.layer_weights(), weights, atol=1e-6)
    for memory, expected in zip(
        layer(layer_states), reference(layer_states, weights), strict=True
    ):
        np.testing.assert_allclose(memory, expected, atol=1e-5)


@pytest.mark.parametrize("granularity", ["fine", "scalar"])
def test_weights_sum_to_one_over_the_states(granularity):
    weights = np.asarray(built(granularity=granularity).layer_weights())
    assert weights.shape == (M, N + 1, D)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    "options, width, num_weights",
    [
        ({}, 512, 21_504),
        ({}, 1024, 43_008),
        ({"granularity": "scalar"}, 512, 42),
        ({"output_norm": True}, 512, 21_504 + 2 * 512),
        ({"output_norm": True, "embedding_norm": True}, 512, 21_504 + 4 * 512),
    ],
)
def test_the_number_of_parameters_is_exact(options, width, num_weights):
    layer = FineGrainedLayerAttention(6, **options)
    layer.build([(None, None, width)] * 7)
    assert layer.count_params() == num_weights


def test_starts_within_the_released_code_s_limit():
    layer = FineGrainedLayerAttention(M)
    layer.build([(B, S, D)] * (N + 1))
    largest = np.abs(layer.layer_logits).max()
    limit = np.sqrt(2.0 / (M + N + 1))
    assert 0.8 * limit < largest <= limit


@pytest.mark.parametrize("number", [0, 3, N])
def test_all_mass_on_one_state_gives_that_state(layer_states, number):
    layer = built()
    logits = np.zeros((M, N + 1, D))
    logits[:, number] = 1e4
    layer.layer_logits.assign(logits)
    for memory in layer(layer_states):
        # On some processors TensorFlow's softmax gives 1 - 2^-24 here.
        np.testing.assert_allclose(memory, layer_states[number], rtol=3e-7)


def test_equal_logits_give_the_mean(layer_states):
    layer = built()
    layer.layer_logits.assign(np.zeros((M, N + 1, D)))
    for memory in layer(layer_states):
        expected = np.mean(layer_states, axis=0)
        np.testing.assert_allclose(memory, expected, atol=1e-6)


def test_each_decoder_block_has_weights_of_its_own(layer_states):
    layer = built()
    before = np.stack(layer(layer_states))
    logits = np.array(layer.layer_logits)
    logits[1, 2] += 1.0
    layer.layer_logits.assign(logits)
    after = np.stack(layer(layer_states))
    np.testing.assert_array_equal(after[0], before[0])
    assert not np.allclose(after[1], before[1])


def test_drop_connect_acts_in_training_only(layer_states):
    layer = built(drop_connect=0.5)
    still = np.stack(layer(layer_states))
    np.testing.assert_array_equal(layer(layer_states, training=False), still)
    assert not np.allclose(layer(layer_states, training=True), still)
    np.testing.assert_allclose(layer.layer_weights(), weights_of(layer), 1e-5)


@pytest.mark.parametrize("granularity", ["fine", "scalar"])
def test_dropping_every_logit_gives_the_mean(layer_states, granularity):
    layer = built(drop_connect=1.0 - 1e-9, granularity=granularity)
    for memory in layer(layer_states, training=True):
        expected = np.mean(layer_states, axis=0)
        np.testing.assert_allclose(memory, expected, atol=1e-6)


def test_drop_connect_zeroes_logits_and_divides_the_others():
    layer = built(drop_connect=0.5)
    layer.layer_logits.assign(np.ones((M, N + 1, D)))
    weights = weights_in_training(layer)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-6)
    logits = np.log(weights / weights.min(axis=1, keepdims=True))
    found = sorted(set(logits.round(4).ravel().tolist()))
    assert found == [0.0, 2.0]


def test_the_embedding_norm_is_of_the_embeddings_alone(layer_states):
    layer = built(embedding_norm=True)
    gain, shift = np.asarray(layer.embedding_norm_layer.weights)
    normed = [normalize(layer_states[0], gain, shift), *layer_states[1:]]
    expected = reference(normed, weights_of(layer))
    np.testing.assert_allclose(layer(layer_states), expected, atol=1e-5)


def test_one_output_norm_serves_all_decoder_blocks(layer_states):
    layer = built(output_norm=True)
    gain, shift = np.asarray(layer.output_norm_layer.weights)
    expected = normalize(
        np.stack(reference(layer_states, weights_of(layer))), gain, shift
    )
    np.testing.assert_allclose(layer(layer_states), expected, atol=1e-4)


def normalize(x, gain, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt(variance + 1e-6) + shift


def test_dropout_is_on_the_memories(layer_states):
    layer = built(drop_connect=0.0, dropout=0.5)
    still, dropped = (
        np.stack(layer(layer_states, training=training))
        for training in (False, True)
    )
    kept = dropped != 0.0
    assert 0.0 < kept.mean() < 1.0
    np.testing.assert_allclose(dropped[kept], 2.0 * still[kept], rtol=1e-5)


@pytest.mark.parametrize("granularity", ["fine", "scalar"])
@pytest.mark.parametrize("masked", [[0], [N], [1, 4]])
def test_a_masked_state_has_no_weight(layer_states, masked, granularity):
    layer = built(masked_layers=masked, granularity=granularity)
    weights = weights_of(layer)
    weights[:, masked] = 0.0
    np.testing.assert_allclose(layer.layer_weights(), weights, atol=1e-6)
    expected = reference(layer_states, weights)
    np.testing.assert_allclose(layer(layer_states), expected, atol=1e-5)


def test_renormalised_weights_sum_to_one_again(layer_states):
    layer = built(masked_layers=[3], renormalize=True)
    weights = weights_of(layer)
    weights[:, 3] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(layer.layer_weights(), weights, atol=1e-6)
    expected = reference(layer_states, weights)
    np.testing.assert_allclose(layer(layer_states), expected, atol=1e-5)


@pytest.mark.parametrize("renormalize", [False, True])
def test_masking_a_state_without_weight_changes_nothing(
    layer_states, renormalize
):
    plain = built()
    logits = np.array(plain.layer_logits)
    logits[:, 2] = -1e9
    plain.layer_logits.assign(logits)
    masked = built(masked_layers=[2], renormalize=renormalize)
    masked.layer_logits.assign(logits)
    np.testing.assert_array_equal(masked(layer_states), plain(layer_states))


def test_a_position_does_not_see_the_others(layer_states):
    layer = built(output_norm=True, embedding_norm=True)
    order = np.random.default_rng(2).permutation(S)
    moved = layer([state[:, order] for state in layer_states])
    expected = np.stack(layer(layer_states))[:, :, order]
    np.testing.assert_allclose(moved, expected, atol=1e-6)


def test_half_precision_rounds_the_memories_once():
    layer = built(dtype="mixed_bfloat16")
    weights = weights_of(layer)
    # In bfloat16 the softmax of rounded logits is off by up to a percent.
    np.testing.assert_allclose(layer.layer_weights(), weights, atol=1e-6)
    random = np.random.default_rng(3)
    states = random.integers(-7, 8, (N + 1, B, S, D)).astype("float32")
    memories = layer(list(states))
    expected = reference(states, weights)
    for memory, right in zip(memories, expected, strict=True):
        assert keras.backend.standardize_dtype(memory.dtype) == "bfloat16"
        found = keras.ops.convert_to_numpy(keras.ops.cast(memory, "float32"))
        np.testing.assert_allclose(found, right, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize(
    "options, shapes, message",
    [
        ({"granularity": "coarse"}, [], "granularity='coarse'"),
        ({"drop_connect": 1.0}, [], "drop_connect=1.0"),
        ({"dropout": -0.1}, [], "dropout=-0.1"),
        ({}, [(B, S, D)], "at least 2 states"),
        ({}, [(B, S, D), (B, S, D + 1)], r"same width.*widths=\[11, 12\]"),
        ({"masked_layers": [3]}, [(B, S, D)] * 3, "from 0 to 2.*\\[3\\]"),
        ({"masked_layers": [-1]}, [(B, S, D)] * 3, "from 0 to 2"),
        ({"masked_layers": [0, 1]}, [(B, S, D)] * 2, "not all of them"),
    ],
)
def test_refuses_what_cannot_be_mixed(options, shapes, message):
    with pytest.raises(ValueError, match=message):
        FineGrainedLayerAttention(M, **options).build(shapes)


def test_a_masked_layer_may_be_an_integer_of_numpy():
    layer = FineGrainedLayerAttention(2, masked_layers=np.int64(1))
    assert layer.get_config()["masked_layers"] == [1]
