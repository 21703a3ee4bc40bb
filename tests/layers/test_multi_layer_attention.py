"""What must be true of MultiLayerAttention: it is Equation 8, with one layer
it is the plain attention, blocks with too few layers below keep that one,
neither padding nor the future can be seen, and a cache changes nothing."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import (
    AggregationNode,
    MultiHeadAttention,
    MultiLayerAttention,
    RotaryPositionEmbedding,
)

B, T, N, H, F = 3, 5, 2, 7, 11
D = N * H


@pytest.fixture
def layer_states():
    random = np.random.default_rng(0)
    return [random.normal(size=(B, T, D)).astype("float32") for _ in range(3)]


def scrambled(layer):
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(weight + random.normal(size=weight.shape) * 0.3)
    return layer


def built(num_layers=2, width=D, num_heads=N, **kwargs):
    layer = MultiLayerAttention(num_heads, num_layers, **kwargs)
    layer.build((B, T, width))
    return scrambled(layer)


def call(layer, layer_states, **kwargs):
    states = layer_states[: layer.num_layers]
    return layer(states[0], states, **kwargs)


@pytest.mark.parametrize("num_layers", [2, 3])
@pytest.mark.parametrize("function", ["sigmoid", "attention"])
def test_matches_the_equation(layer_states, num_layers, function):
    options = {"function": function, "intermediate_dim": F, "residual": "top"}
    layer = built(num_layers, **options)
    real = np.arange(T) < np.array([[5], [3], [1]])
    contexts = []
    for own, state in zip(layer.attentions, layer_states, strict=False):
        attention = MultiHeadAttention(N)
        attention.build((B, T, D))
        attention.set_weights(own.get_weights())
        contexts.append(
            attention(layer_states[0], state, attention_mask=real[:, None])
        )
    assert len(contexts) == num_layers
    node = AggregationNode(num_heads=N, top_index=0, **options)
    node.build([(B, T, D)] * num_layers)
    node.set_weights(layer.node.get_weights())
    np.testing.assert_allclose(
        call(layer, layer_states, attention_mask=real[:, None]),
        node(contexts, padding_mask=real),
        atol=1e-5,
    )


def test_one_layer_is_the_plain_attention(layer_states):
    layer = built(1, attention_dropout=0.5, key_bias=True)
    plain = MultiHeadAttention(N, attention_dropout=0.5, key_bias=True)
    plain.build((B, T, D))
    plain.set_weights(layer.get_weights())
    query = layer_states[0]
    expected = plain(query, use_causal_mask=True)
    np.testing.assert_array_equal(
        layer(query, [query], use_causal_mask=True), expected
    )
    np.testing.assert_array_equal(layer(query, use_causal_mask=True), expected)
    assert not np.allclose(layer(query, training=True), layer(query))


def test_a_block_with_too_few_layers_below_keeps_the_plain_attention():
    options = {
        "attention_dropout": 0.3,
        "key_bias": True,
        "relative_position": RotaryPositionEmbedding(),
    }
    layer = MultiLayerAttention(N, num_layers=3, **options)
    for number in (1, 2, 3):
        plain = layer.at_block(number)
        assert isinstance(plain, MultiHeadAttention) and not plain.built
        given = MultiHeadAttention(N, **options).get_config()
        assert plain.get_config() == given | {"name": plain.name}
    assert layer.at_block(4) is layer and layer.at_block(6) is layer
    assert layer.reads_layer_states


def test_a_prototype_stands_in_every_block(layer_states):
    prototype = MultiHeadAttention(N, key_bias=True, use_bias=False)
    layer = built(2, attention=prototype)
    plain = layer.at_block(1)
    given = prototype.get_config()
    assert plain.get_config() == given | {"name": plain.name}
    assert not plain.built
    paths = {weight.path for weight in layer.attentions[0].weights}
    assert any(path.endswith("key/bias") for path in paths)
    # One attention a layer, with weights of its own.
    assert paths.isdisjoint(w.path for w in layer.attentions[1].weights)
    # A prototype's options are its own.
    assert layer.attentions[0].attention_dropout == 0.0


@pytest.mark.parametrize("number", [0, 1, 2])
def test_each_layer_is_read(layer_states, number):
    layer = built(3)
    changed = list(layer_states)
    changed[number] = changed[number] + 1.0
    query = layer_states[0]
    assert not np.allclose(layer(query, changed), layer(query, layer_states))


@pytest.mark.parametrize("function", ["sigmoid", "attention"])
def test_padding_cannot_be_seen(layer_states, function):
    layer = built(3, function=function)
    real = np.arange(T) < np.array([[5], [3], [1]])
    mask = real[:, None]
    before = np.asarray(call(layer, layer_states, attention_mask=mask))
    changed = [np.where(real[..., None], x, 1e2) for x in layer_states]
    after = np.asarray(call(layer, changed, attention_mask=mask))
    np.testing.assert_allclose(after[real], before[real], atol=1e-5)


@pytest.mark.parametrize("function", ["sigmoid", "attention"])
def test_future_cannot_be_seen(layer_states, function):
    layer = built(3, function=function)
    before = np.asarray(call(layer, layer_states, use_causal_mask=True))
    for t in range(T - 1):
        changed = [state.copy() for state in layer_states]
        for state in changed:
            state[:, t + 1 :] = 1e2
        after = np.asarray(call(layer, changed, use_causal_mask=True))
        np.testing.assert_allclose(
            after[:, : t + 1], before[:, : t + 1], atol=1e-5
        )
        assert not np.allclose(after[:, t + 1 :], before[:, t + 1 :])


@pytest.mark.parametrize(
    "num_layers, function, names",
    [
        (1, "sigmoid", {"lower_1"}),
        (2, "sigmoid", {"lower_1", "lower_2"}),
        (3, "attention", {"lower_1", "lower_2", "lower_3", "node"}),
    ],
)
def test_cached_equals_uncached(layer_states, num_layers, function, names):
    layer = built(num_layers, function=function)
    expected = np.asarray(call(layer, layer_states, use_causal_mask=True))
    cache = layer.init_cache(B, T + 2)
    assert set(cache) == names
    for t in range(T):
        newest = [state[:, t : t + 1] for state in layer_states]
        output, after = call(layer, newest, cache=cache, cache_index=t)
        keras.tree.assert_same_structure(cache, after)
        cache = after
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)


def test_scores_come_back_for_each_layer(layer_states):
    layer = built(3)
    output, scores = call(
        layer, layer_states, use_causal_mask=True, return_attention_scores=True
    )
    expected = call(layer, layer_states, use_causal_mask=True)
    np.testing.assert_array_equal(output, expected)
    assert [score.shape for score in scores] == [(B, N, T, T)] * 3
    for score in scores:
        np.testing.assert_allclose(np.sum(score, axis=-1), 1.0, atol=1e-5)
    _, cache, scores = call(
        layer,
        [state[:, :1] for state in layer_states],
        cache=layer.init_cache(B, T),
        cache_index=0,
        return_attention_scores=True,
    )
    assert set(cache) == {"lower_1", "lower_2", "lower_3"}
    assert [score.shape for score in scores] == [(B, N, 1, T)] * 3


@pytest.mark.parametrize(
    "num_layers, num_blocks, at_base_size",
    [(1, 5, 0), (2, 4, 33_554_432), (3, 3, 37_748_736)],
)
def test_the_number_of_weights_is_that_of_the_paper(
    num_layers, num_blocks, at_base_size
):
    layer = MultiLayerAttention(N, num_layers)
    changed = [n for n in range(1, 7) if layer.at_block(n) is layer]
    assert len(changed) == num_blocks
    for width in (2, 6):
        layer = built(num_layers, width)
        matrices = [w for w in layer.weights if len(w.shape) == 2]
        count = sum(int(np.prod(w.shape)) for w in matrices)
        units, rest = divmod(count, width**2)
        assert rest == 0
        # Beyond the four matrices of the attention that stood there; encoder
        # and decoder, 512 wide.
        growth = 2 * num_blocks * (units - 4) * 512**2
        assert growth == at_base_size


@pytest.mark.parametrize("count", [1, 3])
def test_refuses_a_wrong_number_of_states(layer_states, count):
    with pytest.raises(ValueError, match=f"2 layers below.*={count}"):
        built(2)(layer_states[0], layer_states[:count])


def test_refuses_to_guess_the_layers_below(layer_states):
    with pytest.raises(ValueError, match="`layer_states`.*=None"):
        MultiLayerAttention(N, 2)(layer_states[0])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_layers": 0}, "num_layers=0"),
        ({"function": "tanh"}, "function='tanh'"),
        ({"attention": 3}, "Received: 3"),
    ],
)
def test_refuses_options_it_does_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        MultiLayerAttention(N, **options)
