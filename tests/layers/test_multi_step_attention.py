"""What must be true of MultiStepAttention: it is its equations; a mean of S
equal values is sqrt(S) of them, S real positions; logits are not divided by
the width; padding cannot be seen and a sentence of padding stays finite; beams
share the keys of their sentence; and its size is as stated."""

import numpy as np
import pytest

from keras_deepnmt.layers import MultiStepAttention

B, T, S, D, U, PAIRS, K = 3, 5, 7, 11, 13, 2, 3
REAL = np.arange(S) < np.array([[7], [4], [1]])
SHAPES = {
    "inputs": (B, T, U),
    "target_embeddings": (B, T, D),
    "key": (B, PAIRS, S, D),
    "value": (B, PAIRS, S, D),
}


@pytest.fixture
def tensors():
    random = np.random.default_rng(0)
    return {
        name: random.normal(size=shape).astype("float32")
        for name, shape in SHAPES.items()
    }


def built(units=U, width=D):
    layer = MultiStepAttention()
    layer.build((None, None, units), (None, None, width))
    random = np.random.default_rng(1)
    layer.set_weights(
        [random.normal(size=w.shape) * 0.5 for w in layer.weights]
    )
    return layer


def project(dense, x):
    return x @ np.asarray(dense.kernel) + np.asarray(dense.bias)


def reference(layer, inputs, target_embeddings, key, value, real):
    query = project(layer.query_projection, inputs)
    query = np.sqrt(0.5) * (query + target_embeddings)
    context = np.zeros((B, T, D))
    scores = np.zeros((B, PAIRS, T, S))
    for b in range(B):
        seen = np.flatnonzero(real[b])
        for t in range(T):
            for n in range(PAIRS):
                exponents = np.exp(key[b, n, seen] @ query[b, t])
                scores[b, n, t, seen] = exponents / exponents.sum()
                one = scores[b, n, t, seen] @ value[b, n, seen]
                context[b, t] += np.sqrt(len(seen)) * one
    context = context / np.sqrt(PAIRS)
    return project(layer.output_projection, context), scores


def test_matches_the_equations(tensors):
    layer = built()
    found, scores = layer(
        **tensors, memory_padding_mask=REAL, return_attention_scores=True
    )
    expected = reference(layer, **tensors, real=REAL)
    np.testing.assert_allclose(found, expected[0], atol=1e-5)
    np.testing.assert_allclose(scores, expected[1], atol=1e-5)


def test_without_a_mask_all_positions_are_real(tensors):
    layer = built()
    expected, _ = reference(layer, **tensors, real=np.ones((B, S), bool))
    np.testing.assert_allclose(layer(**tensors), expected, atol=1e-5)


def test_one_pair_needs_no_axis_of_pairs(tensors):
    layer = built()
    for name in ("key", "value"):
        tensors[name] = tensors[name][:, :1]
    expected = layer(**tensors, memory_padding_mask=REAL)
    for name in ("key", "value"):
        tensors[name] = tensors[name][:, 0]
    found = layer(**tensors, memory_padding_mask=REAL)
    np.testing.assert_array_equal(found, expected)


def plain():
    """A layer whose query is `sqrt(1/2) e`, whose output is its context."""
    layer = built(units=D)
    query, output = layer.query_projection, layer.output_projection
    query.gain.assign(np.zeros(D))
    query.bias.assign(np.zeros(D))
    output.direction.assign(np.eye(D))
    output.gain.assign(np.ones(D))
    output.bias.assign(np.zeros(D))
    return layer


def test_equal_values_under_even_weights_are_scaled_by_the_root_of_the_length():
    values = np.random.default_rng(2).normal(size=(B, 1, D))
    value = np.repeat(values, S, axis=1)
    states = np.ones((B, T, D), "float32")
    key = np.zeros((B, S, D), "float32")
    found = plain()(states, states, key, value)
    expected = np.repeat(np.sqrt(S) * values, T, axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    found = plain()(states, states, key, value, memory_padding_mask=REAL)
    lengths = np.sqrt(REAL.sum(axis=1))[:, None, None]
    expected = np.repeat(lengths * values, T, axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_logits_are_not_divided_by_the_width(tensors):
    embeddings = tensors["target_embeddings"]
    key = tensors["key"][:, 0]
    states = np.zeros((B, T, D), "float32")
    _, scores = plain()(
        states, embeddings, key, key, return_attention_scores=True
    )
    logits = np.log(np.asarray(scores)[:, 0])
    expected = np.sqrt(0.5) * np.einsum("btd,bsd->bts", embeddings, key)
    np.testing.assert_allclose(
        logits - logits[..., :1], expected - expected[..., :1], atol=1e-4
    )


def test_equal_pairs_give_the_root_of_their_number_times_one(tensors):
    layer = plain()
    embeddings = tensors["target_embeddings"]
    states = np.zeros((B, T, D), "float32")
    pair = [tensors[name][:, :1] for name in ("key", "value")]
    one = np.asarray(layer(states, embeddings, *pair))
    triple = [np.repeat(part, 3, axis=1) for part in pair]
    three = layer(states, embeddings, *triple)
    np.testing.assert_allclose(three, np.sqrt(3) * one, atol=1e-5)


def test_padding_cannot_be_seen(tensors):
    layer = built()
    before = layer(**tensors, memory_padding_mask=REAL)
    real = REAL[:, None, :, None]
    mask = np.pad(REAL, ((0, 0), (0, 4)))
    for name in ("key", "value"):
        other = np.where(real, tensors[name], np.float32(1e3))
        wider = ((0, 0), (0, 0), (0, 4), (0, 0))
        tensors[name] = np.pad(other, wider, constant_values=-1e3)
    after = layer(**tensors, memory_padding_mask=mask)
    np.testing.assert_allclose(after, before, atol=1e-5)


def test_a_sentence_of_padding_alone_has_a_context_of_zeros(tensors):
    layer = built()
    mask = REAL.copy()
    mask[1] = False
    found = np.asarray(layer(**tensors, memory_padding_mask=mask))
    bias = np.broadcast_to(layer.output_projection.bias, (T, U))
    np.testing.assert_array_equal(found[1], bias)
    expected = np.asarray(layer(**tensors, memory_padding_mask=REAL))
    np.testing.assert_allclose(found[[0, 2]], expected[[0, 2]], atol=1e-6)


def test_one_source_position_is_handed_through(tensors):
    layer = built()
    for name in ("key", "value"):
        tensors[name] = tensors[name][:, :1, :1]
    context = np.repeat(tensors["value"][:, 0], T, axis=1)
    expected = project(layer.output_projection, context)
    np.testing.assert_allclose(layer(**tensors), expected, atol=1e-5)


def test_a_target_position_does_not_see_the_others(tensors):
    layer = built()
    expected = np.asarray(layer(**tensors))[:, 2:3]
    for name in ("inputs", "target_embeddings"):
        tensors[name] = tensors[name][:, 2:3]
    np.testing.assert_allclose(layer(**tensors), expected, atol=1e-5)


def test_beams_share_the_keys_of_their_sentence(tensors):
    layer = built()
    random = np.random.default_rng(3)
    inputs, embeddings = (
        random.normal(size=(B * K, 1, width)).astype("float32")
        for width in (U, D)
    )
    key, value = tensors["key"], tensors["value"]
    expected = layer(
        inputs,
        embeddings,
        np.repeat(key, K, axis=0),
        np.repeat(value, K, axis=0),
        memory_padding_mask=np.repeat(REAL, K, axis=0),
    )
    found, scores = layer(
        inputs,
        embeddings,
        key,
        value,
        memory_padding_mask=REAL,
        return_attention_scores=True,
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert scores.shape == (B, PAIRS, K, S)


def test_the_number_of_parameters_is_exact():
    assert built().count_params() == 2 * U * D + 2 * D + 2 * U
    assert built(128, 256).count_params() == 66_304


@pytest.mark.parametrize("name", ["key", "value"])
def test_refuses_a_memory_of_another_width(tensors, name):
    tensors[name] = tensors[name][..., : D - 1]
    with pytest.raises(ValueError, match=f"`{name}` must be as wide.*10.*11"):
        MultiStepAttention()(**tensors)
