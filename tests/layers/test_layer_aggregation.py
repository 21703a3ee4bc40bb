"""What must be true of LayerAggregation: it is Equations 4 to 7, also for odd
numbers of layers, only the dense and the hierarchical strategy change what the
blocks read, each node is computed once, all weights exist after the first
call, and a cache changes nothing. Sizes are those of the paper."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.layers import LayerAggregation

B, S, N, H, L = 3, 5, 2, 7, 6
D = N * H
STRATEGIES = ("dense", "linear", "iterative", "hierarchical")


@pytest.fixture
def layer_states():
    random = np.random.default_rng(0)
    return [random.normal(size=(B, S, D)).astype("float32") for _ in range(L)]


def scrambled(layer):
    random = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(weight + random.normal(size=weight.shape) * 0.3)
    return layer


def built(strategy, num_layers=L, width=D, **kwargs):
    """As in a stack: built from its first state alone."""
    layer = LayerAggregation(
        strategy, num_layers=num_layers, num_heads=N, **kwargs
    )
    layer.build([(B, S, width)])
    return scrambled(layer)


def run_stack(aggregation, embedding, num_blocks=L, cache=None, **options):
    """What a model does: `(block inputs, block outputs, output, cache)`."""
    random = np.random.default_rng(2)
    kernels = random.normal(size=(num_blocks, D, D)).astype("float32") * 0.3
    x, inputs, states, previous = embedding, [], [], []
    for number, kernel in enumerate(kernels, start=1):
        inputs.append(x)
        states.append(keras.ops.tanh(keras.ops.matmul(x, kernel)))
        x = states[-1]
        if aggregation.feeds_back:
            options["previous"] = list(previous)
        if aggregation.feeds_back or number == num_blocks:
            x = aggregation(list(states), cache=cache, **options)
            x, cache = x if cache is not None else (x, None)
        previous.append(x)
    return inputs, states, x, cache


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, atol=1e-5)


# --- the equations ---------------------------------------------------------


def test_dense_adds_all_layers_below(layer_states):
    layer = built("dense")
    inputs, states, output, _ = run_stack(layer, layer_states[0])
    given = [*inputs[1:], output]
    for l in range(L):
        assert_close(given[l], states[l] + sum(given[:l]))
    assert not layer.weights


def test_dense_doubles_what_idle_blocks_pass_on(layer_states):
    zeros = np.zeros_like(layer_states[0])
    previous = []
    for number in range(1, L + 1):
        states = [layer_states[0], *[zeros] * (number - 1)]
        output = built("dense")(states, previous=previous)
        assert_close(output, built("dense", number)(states))
        previous.append(np.asarray(output))
    for output, times in zip(previous, (1, 1, 2, 4, 8, 16), strict=True):
        assert_close(output, times * layer_states[0])


def test_linear_adds_a_product_for_each_layer(layer_states):
    layer = built("linear")
    (matrices,) = layer.input_matrices()
    assert matrices.shape == (L, D, D)
    expected = sum(
        state @ np.asarray(matrix)
        for state, matrix in zip(layer_states, matrices, strict=True)
    )
    assert_close(layer(layer_states), expected)


def test_linear_can_be_the_stack_as_it_was(layer_states):
    layer = built("linear")
    only_the_last = np.zeros((L, D, D))
    only_the_last[-1] = np.eye(D)
    layer.set_weights([only_the_last.reshape(L * D, D)])
    assert_close(layer(layer_states), layer_states[-1])


def test_linear_stays_linear_through_a_feed_forward_network(layer_states):
    wide = built("linear", linear_mode="feed_forward")
    into, out = wide.get_weights()
    assert into.shape == (L * D, 4 * D)
    single = built("linear")
    single.set_weights([into @ out])
    np.testing.assert_allclose(
        wide(layer_states), single(layer_states), rtol=1e-4, atol=1e-4
    )


def test_iterative_merges_one_layer_after_the_other(layer_states):
    layer = built("iterative")
    merged = layer_states[0]
    for node, state in zip(layer.nodes, layer_states[1:], strict=True):
        merged = node([state, merged])  # Eq. 6: [H^l; A^(l-1)]
    assert_close(layer(layer_states), merged)


def test_hierarchical_feeds_each_pair_of_layers_back(layer_states):
    layer = built("hierarchical")
    inputs, h, output, _ = run_stack(layer, layer_states[0])
    a1 = layer.nodes[0]([h[0], h[1]])
    a2 = layer.nodes[1]([h[2], h[3], a1])
    a3 = layer.nodes[2]([h[4], h[5], a2])
    expected = [layer_states[0], h[0], a1, h[2], a2, h[4]]
    for found, wanted in zip(inputs, expected, strict=True):
        assert_close(found, wanted)
    assert_close(output, a3)


def test_hierarchical_ends_an_odd_stack_with_a_node_of_two(layer_states):
    layer = built("hierarchical", 5)
    inputs, h, output, _ = run_stack(layer, layer_states[0], 5)
    a1 = layer.nodes[0]([h[0], h[1]])
    a2 = layer.nodes[1]([h[2], h[3], a1])
    assert_close(inputs[4], a2)
    assert_close(output, layer.nodes[2]([h[4], a2]))


@pytest.mark.parametrize(
    "num_layers, num_inputs",
    [
        (1, []),
        (2, [2]),
        (3, [2, 2]),
        (4, [2, 3]),
        (5, [2, 3, 2]),
        (6, [2, 3, 3]),
        (7, [2, 3, 3, 2]),
    ],
)
def test_the_tree_has_the_right_nodes(num_layers, num_inputs):
    layer = built("hierarchical", num_layers)
    assert [node.num_inputs for node in layer.nodes] == num_inputs
    chain = built("iterative", num_layers)
    assert [node.num_inputs for node in chain.nodes] == [2] * (num_layers - 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_layer_is_its_own_aggregation(layer_states, strategy):
    layer = built(strategy, 1)
    if strategy == "linear":
        layer.set_weights([np.eye(D)])
    assert_close(layer(layer_states[:1]), layer_states[0])


@pytest.mark.parametrize(
    "strategy, num_layers, top",
    [
        ("iterative", 4, 3),
        ("hierarchical", 2, 1),
        ("hierarchical", 6, 5),
        ("hierarchical", 5, 4),
    ],
)
def test_the_top_residual_is_the_deepest_layer(
    layer_states, strategy, num_layers, top
):
    layer = built(strategy, num_layers, residual="top")
    for weight in layer.weights:
        # What is left of a node is the norm of its residual.
        weight.assign(
            np.full(weight.shape, float(weight.path.endswith("gamma")))
        )
    state = layer_states[top]
    expected = state - state.mean(axis=-1, keepdims=True)
    expected /= state.std(axis=-1, keepdims=True)
    assert_close(layer(layer_states[:num_layers]), expected)


# --- in a stack ------------------------------------------------------------


def test_only_two_strategies_feed_back():
    feeding = [name for name in STRATEGIES if LayerAggregation(name).feeds_back]
    assert feeding == ["dense", "hierarchical"]


def test_a_node_of_the_tree_changes_what_the_next_block_reads(layer_states):
    layer = built("hierarchical")
    before, _, _, _ = run_stack(layer, layer_states[0])
    for weight in layer.nodes[0].weights:
        weight.assign(weight + 0.1)
    after, _, _, _ = run_stack(layer, layer_states[0])
    same = [
        np.allclose(one, other)
        for one, other in zip(before, after, strict=True)
    ]
    assert same == [True, True, False, False, False, False]


@pytest.mark.parametrize("strategy", ["linear", "iterative"])
def test_no_other_weight_changes_the_blocks(layer_states, strategy):
    layer = built(strategy)
    _, before, output, _ = run_stack(layer, layer_states[0])
    for weight in layer.weights:
        weight.assign(weight + np.random.normal(size=weight.shape))
    _, after, changed, _ = run_stack(layer, layer_states[0])
    np.testing.assert_array_equal(before, after)
    assert not np.allclose(output, changed)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("num_layers", [5, 6])
def test_one_by_one_equals_all_at_once(layer_states, strategy, num_layers):
    layer = built(strategy, num_layers)
    previous = []
    for number in range(1, num_layers + 1):
        previous.append(layer(layer_states[:number], previous=list(previous)))
    assert_close(previous[-1], layer(layer_states[:num_layers]))


def test_a_block_without_a_node_hands_on_its_own_state(layer_states):
    layer = built("hierarchical")
    a1 = layer(layer_states[:2], previous=layer_states[:1])
    found = layer(layer_states[:3], previous=[layer_states[0], a1])
    np.testing.assert_array_equal(found, layer_states[2])


@pytest.mark.parametrize("strategy", ["iterative", "hierarchical"])
def test_each_node_is_computed_once(layer_states, strategy):
    layer = built(strategy, dropout=0.5)
    # A node that drops activations twice draws two seeds.
    draws = [node.dropout_layer.seed_generator.state for node in layer.nodes]
    before = np.array([np.asarray(state) for state in draws])
    run_stack(layer, layer_states[0], training=True)
    after = np.array([np.asarray(state) for state in draws])
    assert (after - before)[:, -1].tolist() == [1] * len(layer.nodes)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_weights_exist_after_the_first_call(layer_states, strategy):
    layer = LayerAggregation(strategy, num_layers=L)
    layer(layer_states[:1], previous=[])
    alone = LayerAggregation(strategy)
    alone(layer_states)
    assert alone.num_layers is None
    shapes = [weight.shape for weight in alone.weights]
    assert [weight.shape for weight in layer.weights] == shapes


@pytest.mark.parametrize(
    "strategy, num_layers",
    [("iterative", 3), ("hierarchical", 5), ("hierarchical", 4)],
)
def test_cached_equals_uncached(layer_states, strategy, num_layers):
    layer = built(strategy, num_layers, function="attention")
    embedding = layer_states[0]
    _, _, expected, _ = run_stack(
        layer, embedding, num_layers, use_causal_mask=True
    )
    cache = layer.init_cache(B, S + 2)
    assert set(cache) == {node.name for node in layer.nodes}
    for t in range(S):
        _, _, output, cache = run_stack(
            layer,
            embedding[:, t : t + 1],
            num_layers,
            cache=cache,
            cache_index=t,
        )
        assert_close(output, expected[:, t : t + 1])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_position_alone_needs_no_cache(layer_states, strategy):
    layer = built(strategy)
    assert layer.init_cache(B, S) == {}
    expected = layer(layer_states)
    output, cache = layer(
        [state[:, 2:3] for state in layer_states], cache={}, cache_index=2
    )
    assert cache == {}
    assert_close(output, expected[:, 2:3])


def test_neither_padding_nor_the_future_can_be_seen(layer_states):
    layer = built("hierarchical", function="attention")
    real = np.arange(S) < np.array([[5], [3], [1]])
    before = layer(layer_states, padding_mask=real)
    changed = [np.where(real[..., None], x, 1e2) for x in layer_states]
    after = layer(changed, padding_mask=real)
    assert_close(np.asarray(after)[real], np.asarray(before)[real])
    before = layer(layer_states, use_causal_mask=True)
    for t in range(S - 1):
        changed = [state.copy() for state in layer_states]
        changed[1][:, t + 1 :] = 1e2
        after = layer(changed, use_causal_mask=True)
        assert_close(after[:, : t + 1], before[:, : t + 1])
        assert not np.allclose(after[:, t + 1 :], before[:, t + 1 :])


def test_gradient_reaches_every_weight_of_a_tree(layer_states):
    layer = built("hierarchical")
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(layer(layer_states) ** 3)
    for gradient in tape.gradient(loss, layer.trainable_weights):
        assert np.any(gradient.numpy() != 0)


# --- sizes -----------------------------------------------------------------


def num_matrix_weights(layer):
    matrices = [w for w in layer.weights if len(w.shape) == 2]
    return sum(int(np.prod(w.shape)) for w in matrices)


@pytest.mark.parametrize(
    "strategy, options, at_base_size",
    [
        ("dense", {}, 0),
        ("linear", {}, 3_145_728),
        ("linear", {"linear_mode": "feed_forward"}, 14_680_064),
        ("iterative", {}, 31_457_280),
        ("hierarchical", {}, 23_068_672),
    ],
)
def test_the_number_of_weights_is_that_of_the_paper(
    strategy, options, at_base_size
):
    for width in (2, 3, 5):
        units, rest = divmod(
            num_matrix_weights(built(strategy, width=width, **options)),
            width**2,
        )
        assert rest == 0
        # Encoder and decoder, six layers each, 512 wide.
        assert 2 * units * 512**2 == at_base_size


def test_the_tree_at_base_size_has_23_million_weights():
    layer = LayerAggregation("hierarchical", num_layers=6)
    layer.build([(None, None, 512)])
    assert 2 * num_matrix_weights(layer) == 23_068_672
    biases_and_norms = 3 * (2048 + 512 + 2 * 512)
    assert layer.count_params() == 23_068_672 // 2 + biases_and_norms


# --- misuse ----------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"strategy": "tree"}, "'hierarchical'.*strategy='tree'"),
        ({"linear_mode": "ffn"}, "'feed_forward'.*linear_mode='ffn'"),
        ({"function": "tanh"}, "'sigmoid'.*function='tanh'"),
        ({"num_layers": 0}, "num_layers=0"),
    ],
)
def test_refuses_options_it_does_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        LayerAggregation(**options)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_refuses_a_wrong_number_of_states(layer_states, strategy):
    layer = built(strategy)
    with pytest.raises(ValueError, match="each of the 6 blocks.*5 states"):
        layer(layer_states[:5])
    with pytest.raises(ValueError, match="3 states and 1 previous outputs"):
        layer(layer_states[:3], previous=layer_states[:1])
    with pytest.raises(ValueError, match="there are 2 blocks"):
        built(strategy, 2)(layer_states[:3], previous=layer_states[:2])


def test_refuses_a_stack_of_unknown_height(layer_states):
    layer = LayerAggregation("hierarchical")
    with pytest.raises(ValueError, match="needs `num_layers`"):
        layer(layer_states[:1], previous=[])


def test_refuses_states_of_different_widths(layer_states):
    with pytest.raises(ValueError, match="`layer_states`.*widths=\\[14, 13\\]"):
        LayerAggregation("dense")([layer_states[0], layer_states[1][..., 1:]])
