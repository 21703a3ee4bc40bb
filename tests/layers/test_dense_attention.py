"""What must be true of DenseAttention: it is Equation 9 or 10; with one state
both are the same; equal states count as the root of their number; padding
cannot be seen; step by step gives the same from keys and values computed once;
a decoder of several layers computes them once too, as the models of the paper
do."""

import functools

import keras
import numpy as np
import pytest

from keras_deepnmt import create_model
from keras_deepnmt.layers import (
    DenseAttention,
    DenseAttentionMemory,
    MultiStepAttention,
)

B, T, S, D, U, K = 3, 5, 7, 11, 13, 3
WIDTHS = (2, 2, D)
REAL = np.arange(S) < np.array([[7], [4], [1]])
each_variant = pytest.mark.parametrize("variant", [1, 2])


@pytest.fixture
def tensors():
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.normal(size=shape).astype("float32")

    return {
        "inputs": normal(B, T, U),
        "target_embeddings": normal(B, T, D),
        "layer_states": [normal(B, S, width) for width in WIDTHS],
        "source_embeddings": normal(B, S, D),
    }


def built(variant, tensors):
    layer = DenseAttention(variant)
    shapes = {
        f"{name}_shape": keras.tree.map_structure(np.shape, value)
        for name, value in tensors.items()
        if name != "layer_states"
    }
    states = [state.shape for state in tensors["layer_states"]]
    layer.build(**shapes, layer_states_shape=states)
    random = np.random.default_rng(1)
    layer.set_weights(
        [random.normal(size=w.shape) * 0.5 for w in layer.weights]
    )
    return layer


def project(dense, x):
    return x @ np.asarray(dense.kernel) + np.asarray(dense.bias)


def attend(query, key, value):
    """F of Equation 8 for one sentence of real tokens, times sqrt(S)."""
    weights = np.exp(query @ key.T)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return np.sqrt(len(key)) * weights @ value


def reference(layer, inputs, target_embeddings, layer_states, embeddings, real):
    attention, memory = layer.attention, layer.memory
    query = project(attention.query_projection, inputs) + target_embeddings
    context = np.zeros((B, T, D))
    for b in range(B):
        states = [state[b, real[b]] for state in layer_states]
        words = embeddings[b, real[b]]
        if layer.variant == 1:  # Equation 9
            states = [np.concatenate(states, axis=-1)]
        for i, state in enumerate(states):  # Equation 10
            key = project(memory.projections[i], state)
            value = np.sqrt(0.5) * (key + words)
            context[b] += attend(np.sqrt(0.5) * query[b], key, value)
        context[b] /= np.sqrt(len(states))
    return project(attention.output_projection, context)


@each_variant
def test_matches_the_equations(tensors, variant):
    layer = built(variant, tensors)
    found = layer(**tensors, memory_padding_mask=REAL)
    expected = reference(layer, *tensors.values(), real=REAL)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_embeddings_of_other_widths_are_refused_by_name(tensors):
    tensors["source_embeddings"] = tensors["source_embeddings"][..., 1:]
    with pytest.raises(ValueError, match="`source_embeddings` must be as wide"):
        DenseAttention()(**tensors)


def test_states_or_a_cache_must_be_passed(tensors):
    layer = built(1, tensors)
    with pytest.raises(ValueError, match="or a `static_cache`"):
        layer(tensors["inputs"], tensors["target_embeddings"])


@each_variant
def test_without_a_mask_all_positions_are_real(tensors, variant):
    layer = built(variant, tensors)
    real = np.ones((B, S), bool)
    expected = reference(layer, *tensors.values(), real=real)
    np.testing.assert_allclose(layer(**tensors), expected, atol=1e-5)


def test_with_one_state_both_variants_are_one(tensors):
    tensors["layer_states"] = tensors["layer_states"][-1:]
    first, second = (
        built(variant, tensors)(**tensors, memory_padding_mask=REAL)
        for variant in (1, 2)
    )
    np.testing.assert_array_equal(first, second)


def test_equal_states_count_as_the_root_of_their_number(tensors):
    state = tensors["layer_states"][-1]
    one = built(2, {**tensors, "layer_states": [state]})
    tensors["layer_states"] = [state] * 3
    three = built(2, tensors)
    for projection in three.memory.projections:
        weights = one.memory.projections[0].get_weights()
        projection.set_weights(weights)
    three.attention.set_weights(one.attention.get_weights())
    for layer in (one, three):
        layer.attention.output_projection.bias.assign(np.zeros(U))
    single = one(**{**tensors, "layer_states": [state]})
    np.testing.assert_allclose(
        three(**tensors), np.sqrt(3) * np.asarray(single), atol=1e-5
    )


@each_variant
def test_every_state_is_attended_to(tensors, variant):
    layer = built(variant, tensors)
    before = np.asarray(layer(**tensors))
    for number in range(len(WIDTHS)):
        states = list(tensors["layer_states"])
        states[number] = states[number] + 1.0
        after = layer(**{**tensors, "layer_states": states})
        assert not np.allclose(after, before, atol=1e-2)


@each_variant
def test_padding_cannot_be_seen(tensors, variant):
    layer = built(variant, tensors)
    before = layer(**tensors, memory_padding_mask=REAL)
    wider = ((0, 0), (0, 4), (0, 0))
    for name in ("layer_states", "source_embeddings"):
        tensors[name] = keras.tree.map_structure(
            lambda x: np.pad(
                np.where(REAL[..., None], x, np.float32(1e3)), wider
            ),
            tensors[name],
        )
    mask = np.pad(REAL, ((0, 0), (0, 4)))
    after = layer(**tensors, memory_padding_mask=mask)
    np.testing.assert_allclose(after, before, atol=1e-5)


@each_variant
def test_a_step_equals_the_whole_and_beams_share_a_sentence(tensors, variant):
    layer = built(variant, tensors)
    expected = np.asarray(layer(**tensors, memory_padding_mask=REAL))
    cache = layer.static_cache(
        tensors["layer_states"], tensors["source_embeddings"]
    )
    assert cache["key"].shape == (B, 1 if variant == 1 else 3, S, D)
    # Each target position as another beam: the source is not read again.
    for beams in ([0, 1, 2], [4, 3, 0]):
        step = {
            name: tensors[name][:, beams].reshape(B * K, 1, -1)
            for name in ("inputs", "target_embeddings")
        }
        found = layer(**step, memory_padding_mask=REAL, static_cache=cache)
        np.testing.assert_allclose(
            found, expected[:, beams].reshape(B * K, 1, U), atol=1e-5
        )


def test_decoder_layers_share_keys_and_values(tensors):
    layer = built(2, tensors)
    cache = layer.static_cache(
        tensors["layer_states"], tensors["source_embeddings"]
    )
    another = MultiStepAttention()
    found = another(
        tensors["inputs"],
        tensors["target_embeddings"],
        **cache,
        memory_padding_mask=REAL,
    )
    layer.attention.set_weights(another.get_weights())
    expected = layer(**tensors, memory_padding_mask=REAL)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # A further layer has no weights for keys and values.
    assert another.count_params() == 2 * U * D + 2 * U + 2 * D


def recording(call, recorded):
    """A layer's `call` that also records its inputs and outputs."""

    @functools.wraps(call)  # with its signature, which Keras reads
    def recording_call(self, *inputs, **options):
        outputs = call(self, *inputs, **options)
        recorded.append((inputs, outputs))
        return outputs

    return recording_call


@each_variant
def test_a_model_of_the_paper_attends_by_this_layer(variant, monkeypatch):
    calls = {MultiStepAttention: [], DenseAttentionMemory: []}
    for part, recorded in calls.items():
        monkeypatch.setattr(part, "call", recording(part.call, recorded))
    model = create_model(f"dense_nmt_{variant}_tiny", 17, 19)
    for recorded in calls.values():
        recorded.clear()  # those of the functional graph
    source_ids = np.array([[7, 5, 9, 3, 0], [4, 3, 0, 0, 0]], "int32")
    target_ids = np.array([[2, 8, 6], [2, 5, 0]], "int32")
    model.decode(target_ids, model.encode(source_ids))
    ((memory_inputs, _),) = calls[DenseAttentionMemory]
    (inputs, expected), *others = calls[MultiStepAttention]
    assert len(others) == len(model.decoder_blocks) - 1
    layer = DenseAttention(variant)
    layer(*inputs[:2], *memory_inputs)  # builds it
    layer.memory.set_weights(model.attention_memory.get_weights())
    block = model.decoder_blocks[0]
    layer.attention.set_weights(block.attention.get_weights())
    found = layer(
        *inputs[:2], *memory_inputs, memory_padding_mask=source_ids != 0
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_refuses_what_cannot_be(tensors):
    with pytest.raises(ValueError, match="1, 2.*variant=0"):
        DenseAttention(0)(**tensors)
    tensors["source_embeddings"] = tensors["source_embeddings"][..., : D - 1]
    with pytest.raises(ValueError, match="as wide as.*10.*11"):
        DenseAttention()(**tensors)
