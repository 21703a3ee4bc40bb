"""What must be true of AggregationNode: it is Equation 7, without its function
it is the norm of its residuals, only the attention looks at other positions
and neither at padding nor ahead, and a cache changes nothing."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import AggregationNode

B, S, N, H, F = 3, 5, 2, 7, 11
D = N * H


@pytest.fixture
def inputs():
    random = np.random.default_rng(0)
    return [random.normal(size=(B, S, D)).astype("float32") for _ in range(3)]


def built(num_inputs=3, **kwargs):
    # The same weights in every run: some attend to no padding.
    keras.utils.set_random_seed(1)
    node = AggregationNode(num_heads=N, **kwargs)
    node.build([(B, S, D)] * num_inputs)
    random = np.random.default_rng(1)
    for weight in node.weights:
        weight.assign(weight + random.normal(size=weight.shape) * 0.3)
    return node


def layer_norm(node, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    gain, bias = (np.asarray(weight) for weight in node.layer_norm.weights)
    return gain * (x - mean) / np.sqrt(variance + 1e-6) + bias


def reference(node, inputs, activation, residuals):
    first, first_bias, second, second_bias = (
        np.asarray(weight)
        for dense in (node.input_dense, node.output_dense)
        for weight in dense.weights
    )
    total = np.zeros((B, S, D))
    for b in range(B):
        for s in range(S):
            z = np.concatenate([x[b, s] for x in inputs])
            hidden = activation(z @ first + first_bias)
            total[b, s] = hidden @ second + second_bias
            total[b, s] += sum(inputs[j][b, s] for j in residuals)
    return layer_norm(node, total)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0.0)


@pytest.mark.parametrize(
    "options, activation, residuals",
    [
        ({}, sigmoid, [0, 1, 2]),
        ({"function": "relu", "residual": "top"}, relu, [0]),
        ({"residual": "top", "top_index": 1}, sigmoid, [1]),
        ({"function": "relu", "residual": "none"}, relu, []),
    ],
)
def test_matches_the_equation(inputs, options, activation, residuals):
    node = built(intermediate_dim=F, **options)
    expected = reference(node, inputs, activation, residuals)
    np.testing.assert_allclose(node(inputs), expected, atol=1e-5)


def test_attention_stands_in_the_place_of_the_feed_forward(inputs):
    node = built(function="attention")
    mask = np.arange(S) < np.array([[5], [3], [1]])
    joined = np.concatenate(inputs, axis=-1)
    z = joined @ np.asarray(node.input_dense.kernel)
    assert node.input_dense.bias is None
    y = np.asarray(node.attention(z, attention_mask=mask[:, None]))
    np.testing.assert_allclose(
        node(inputs, padding_mask=mask),
        layer_norm(node, y + sum(inputs)),
        atol=1e-5,
    )


@pytest.mark.parametrize("function", ["sigmoid", "relu", "attention"])
@pytest.mark.parametrize(
    "options, residuals",
    [
        ({}, [0, 1]),
        ({"residual": "top"}, [0]),
        ({"residual": "top", "top_index": 1}, [1]),
        ({"residual": "none"}, []),
    ],
)
def test_without_its_function_it_is_the_norm_of_its_residuals(
    inputs, function, options, residuals
):
    node = built(2, function=function, **options)
    for weight in node.weights:
        if "layer_norm" not in weight.path:
            weight.assign(np.zeros(weight.shape))
    total = sum((inputs[j] for j in residuals), np.zeros((B, S, D)))
    np.testing.assert_allclose(
        node(inputs[:2]), layer_norm(node, total), atol=1e-5
    )


def test_padding_cannot_be_seen(inputs):
    node = built(function="attention")
    real = np.arange(S) < np.array([[5], [3], [1]])
    before = np.asarray(node(inputs, padding_mask=real))
    changed = [np.where(real[..., None], x, 1e2) for x in inputs]
    after = np.asarray(node(changed, padding_mask=real))
    np.testing.assert_allclose(after[real], before[real], atol=1e-5)
    assert not np.allclose(node(changed)[1, 0], before[1, 0])


def test_the_options_of_attention_reach_it():
    node = built(
        function="attention",
        attention_dropout=0.25,
        key_bias=True,
        attention_initializer="ones",
    )
    assert node.attention.attention_dropout == 0.25
    assert node.attention.key_projection.bias is not None
    plain = AggregationNode(
        "attention", num_heads=N, attention_initializer="ones"
    )
    plain.build([(B, S, D)] * 2)
    assert np.all(np.asarray(plain.attention.query_projection.kernel) == 1.0)


def test_an_attention_mask_is_joined_with_the_padding_mask(inputs):
    node = built(function="attention")
    real = np.arange(S) < np.array([[5], [3], [1]])
    causal = np.tril(np.ones((1, S, S), bool))
    np.testing.assert_allclose(
        node(inputs, padding_mask=real, attention_mask=causal),
        node(inputs, padding_mask=real, use_causal_mask=True),
        atol=1e-6,
    )


def test_future_cannot_be_seen(inputs):
    node = built(function="attention")
    before = np.asarray(node(inputs, use_causal_mask=True))
    for t in range(S - 1):
        changed = [x.copy() for x in inputs]
        changed[1][:, t + 1 :] = 1e2
        after = np.asarray(node(changed, use_causal_mask=True))
        np.testing.assert_allclose(
            after[:, : t + 1], before[:, : t + 1], atol=1e-5
        )
        assert not np.allclose(after[:, t + 1 :], before[:, t + 1 :])


@pytest.mark.parametrize(
    "function, names", [("sigmoid", set()), ("attention", {"key", "value"})]
)
def test_cached_equals_uncached(inputs, function, names):
    node = built(function=function)
    expected = np.asarray(node(inputs, use_causal_mask=True))
    cache = node.init_cache(B, S + 2)
    assert set(cache) == (
        {"key", "value"} if function == "attention" else set()
    )
    for t in range(S):
        output, cache = node(
            [x[:, t : t + 1] for x in inputs], cache=cache, cache_index=t
        )
        np.testing.assert_allclose(output, expected[:, t : t + 1], atol=1e-5)


@pytest.mark.parametrize("num_inputs, units", [(2, 12), (3, 16), (6, 28)])
def test_the_number_of_parameters_is_exact(num_inputs, units):
    node = built(num_inputs, intermediate_dim=F)
    matrices = num_inputs * D * F + F * D
    assert node.count_params() == matrices + (F + D) + 2 * D
    # The paper's width of the feed-forward network, four times the model's.
    matrices = [w for w in built(num_inputs).weights if len(w.shape) == 2]
    assert sum(np.prod(w.shape) for w in matrices) == units * D * D


def test_dropout_acts_on_the_function_alone_and_in_training_only(inputs):
    node = built(dropout=0.5)
    still = node(inputs, training=False)
    np.testing.assert_array_equal(node(inputs), still)
    assert not np.allclose(node(inputs, training=True), still)
    for dense in (node.input_dense, node.output_dense):
        for weight in dense.weights:
            weight.assign(np.zeros(weight.shape))
    np.testing.assert_array_equal(node(inputs, training=True), node(inputs))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"function": "tanh"}, "'relu', 'attention'.*function='tanh'"),
        ({"residual": "bottom"}, "'top', 'none'.*residual='bottom'"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"intermediate_dim": 0}, "intermediate_dim=0"),
    ],
)
def test_refuses_options_it_does_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        AggregationNode(**options)


def test_refuses_a_top_that_is_no_input(inputs):
    with pytest.raises(ValueError, match="top_index=3 and 3 inputs"):
        AggregationNode(residual="top", top_index=3)(inputs)


def test_refuses_inputs_of_different_widths(inputs):
    with pytest.raises(ValueError, match="same width.*widths=\\[14, 13\\]"):
        AggregationNode()([inputs[0], inputs[1][..., 1:]])


def test_refuses_what_is_not_a_list(inputs):
    with pytest.raises(ValueError, match="`inputs` must be a list"):
        AggregationNode()(inputs[0])


def test_refuses_another_number_of_inputs_than_before(inputs):
    node = built(3)
    with pytest.raises(ValueError, match="list of 3 tensors.*2 tensors"):
        node(inputs[:2])
