"""What must be true of RoleInteraction: it is Equation 5 with a full tensor and
Equation 8 with rank 1, which is a special tensor; one role alone is one matrix;
nothing but the embedding is left where the tensor is zero; a target side sees
no later token, refuses to, and gives the same step by step; dropout falls on
embeddings and roles; the parameters are those of the paper."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import RoleInteraction
from keras_deepnmt.models import Transformer

B, S, D, R, U = 3, 7, 5, 11, 2
REAL = np.arange(S) < np.array([[7], [4], [1]])


@pytest.fixture
def inputs():
    random = np.random.default_rng(0)
    return random.normal(size=(B, S, D)).astype("float32")


def built(width=D, **options):
    layer = RoleInteraction(R, role_units=U, **options)
    layer.build((B, S, width))
    random = np.random.default_rng(1)
    for weight in layer.trainable_weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


def full_kernels(layer):
    """Rank 1 as a tensor: U_i = U_o diag(U_r[i]) U_e, input axis first."""
    if not layer.rank_one:
        return np.asarray(layer.role_kernels)
    role, embedding, output = (
        np.asarray(part.kernel)
        for part in (
            layer.role_factor,
            layer.embedding_factor,
            layer.output_factor,
        )
    )
    return np.stack([embedding @ np.diag(row) @ output for row in role])


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("rank_one", [False, True])
def test_matches_the_equation(inputs, residual, rank_one):
    layer = built(residual=residual, rank_one=rank_one)
    output, roles = layer(inputs, padding_mask=REAL, return_roles=True)
    kernels = full_kernels(layer)
    expected = np.zeros((B, S, D))
    for b in range(B):
        for t in range(S):
            for role, kernel in zip(roles[b, t], kernels, strict=True):
                expected[b, t] += float(role) * (inputs[b, t] @ kernel)
    if residual:
        expected += inputs
    np.testing.assert_allclose(output, expected, atol=1e-4)
    assert roles.shape == (B, S, R)


def test_is_a_tensor_product_times_a_stacked_matrix(inputs):
    layer = built(residual=False)
    output, roles = layer(inputs, return_roles=True)
    product = np.einsum("btr,btd->btrd", roles, inputs).reshape(B, S, R * D)
    stacked = np.asarray(layer.role_kernels).reshape(R * D, D)
    np.testing.assert_allclose(output, product @ stacked, atol=1e-4)


@pytest.mark.parametrize("residual", [False, True])
def test_one_role_alone_is_one_matrix(inputs, residual):
    layer = built(assignment="onehot", residual=residual)
    # The third logit is always the largest.
    layer.roles.dense_roles.kernel.assign(np.zeros((2 * U, R)))
    layer.roles.dense_roles.bias.assign(np.ones(R))
    layer.roles.role_logits.kernel.assign(np.eye(R)[[3] * R])
    expected = inputs @ np.asarray(layer.role_kernels)[3]
    expected = expected + inputs if residual else expected
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-5)


@pytest.mark.parametrize("rank_one", [False, True])
def test_with_a_tensor_of_zeros_only_the_embedding_is_left(inputs, rank_one):
    layer = built(rank_one=rank_one)
    zeroed = layer.output_factor.kernel if rank_one else layer.role_kernels
    zeroed.assign(np.zeros(zeroed.shape))
    np.testing.assert_array_equal(layer(inputs), inputs)


@pytest.mark.parametrize("initializer", [None, "glorot_uniform"])
def test_a_role_s_matrix_starts_as_glorot_s(initializer):
    layer = RoleInteraction(3, output_initializer=initializer)
    layer.build((B, S, 64))
    kernels = np.asarray(layer.role_kernels)
    limit = np.sqrt(6 / (64 + 64))
    assert np.abs(kernels).max() <= limit
    np.testing.assert_allclose(
        kernels.std(axis=(1, 2)), limit / np.sqrt(3), rtol=0.05
    )
    assert not np.allclose(kernels[0], kernels[1], atol=limit / 10)


@pytest.mark.parametrize("role_encoder", ["lstm", "cnn"])
def test_padding_cannot_be_seen(inputs, role_encoder):
    layer = built(role_encoder=role_encoder)
    expected = np.asarray(layer(inputs, padding_mask=REAL))
    other = np.where(REAL[..., None], inputs, 9.0)
    other = np.pad(other, ((0, 0), (0, 2), (0, 0)), constant_values=9.0)
    mask = np.pad(REAL, ((0, 0), (0, 2)))
    found = np.asarray(layer(other, padding_mask=mask))[:, :S]
    np.testing.assert_allclose(found[REAL], expected[REAL], atol=1e-5)


@pytest.mark.parametrize("role_encoder", ["lstm", "cnn"])
@pytest.mark.parametrize("assignment", ["dense", "onehot"])
def test_a_target_side_is_causal_and_the_same_step_by_step(
    inputs, role_encoder, assignment
):
    layer = built(
        assignment=assignment,
        role_encoder=role_encoder,
        bidirectional=False,
        positions="target",
    )
    expected, expected_roles = layer(inputs, return_roles=True)
    cache = layer.init_cache(B, S)
    for t in range(S):
        found, cache, roles = layer(
            inputs[:, t : t + 1],
            cache=cache,
            cache_index=t,
            return_roles=True,
        )
        np.testing.assert_allclose(found, expected[:, t : t + 1], atol=1e-5)
        np.testing.assert_allclose(
            roles, expected_roles[:, t : t + 1], atol=1e-5
        )
    changed = inputs.copy()
    changed[:, 4:] += 1.0
    np.testing.assert_array_equal(layer(changed)[:, :4], expected[:, :4])
    assert not np.allclose(layer(changed)[:, 4:], expected[:, 4:])


def test_both_directions_differ_from_one(inputs):
    changed = inputs.copy()
    changed[:, 4:] += 1.0
    layer = built()
    before, after = np.asarray(layer(inputs)), np.asarray(layer(changed))
    assert np.all(np.any(before[:, :4] != after[:, :4], axis=-1))


def test_dropout_falls_on_embeddings_and_on_roles(inputs):
    layer = built(dropout=0.9)
    still = np.asarray(layer(inputs))
    np.testing.assert_array_equal(layer(inputs, training=False), still)
    # Without roles only the remaining embedding is left.
    layer.role_kernels.assign(np.zeros((R, D, D)))
    left = np.asarray(layer(inputs, training=True))
    kept = left != 0
    assert 0 < kept.sum() < kept.size / 2
    np.testing.assert_allclose(left[kept], 10 * inputs[kept], rtol=1e-5)
    # With one role of ones, nothing of it is left where it is dropped.
    layer = built(dropout=0.9, token_dropout=0.0, residual=False)
    layer.role_kernels.assign(np.ones((R, D, D)))
    layer.roles.dense_roles.bias.assign(np.full(R, 9.0))
    layer.roles.dense_roles.kernel.assign(np.zeros((2 * U, R)))
    sums = inputs.sum(axis=-1, keepdims=True)
    counts = np.asarray(layer(inputs, training=True)) / (10 * sums)
    np.testing.assert_allclose(counts, counts.round(), atol=1e-3)
    assert 0 < counts.mean() < R / 2


@pytest.mark.parametrize(
    "width, num_roles, rank_one, number",
    [
        (256, 16, True, 135_168),
        (256, 32, True, 139_264),
        (512, 32, True, 540_672),
        (64, 16, False, 16 * 64**2),
    ],
)
def test_the_number_of_parameters_is_exact(width, num_roles, rank_one, number):
    layer = RoleInteraction(num_roles, rank_one=rank_one)
    layer.build((None, None, width))
    assert layer.count_params() - layer.roles.count_params() == number


def test_roles_can_be_had_in_a_functional_graph(inputs):
    symbol = keras.Input((None, D))
    layer = RoleInteraction(R)
    model = keras.Model(symbol, layer(symbol, return_roles=True))
    assert [tuple(x.shape) for x in model.outputs] == [
        (None, None, D),
        (None, None, R),
    ]
    assert [x.shape for x in model(inputs)] == [(B, S, D), (B, S, R)]


def test_a_model_with_roles_on_both_sides_decodes_as_it_scores():
    model = Transformer(
        13,
        11,
        8,
        16,
        2,
        1,
        1,
        source_embedding_layer=RoleInteraction(3, "softmax"),
        target_embedding_layer=RoleInteraction(
            3, "softmax", bidirectional=False
        ),
    )
    random = np.random.default_rng(0)
    model.set_weights(
        [w + 0.2 * random.normal(size=w.shape) for w in model.get_weights()]
    )
    source_ids = np.array([[5, 6, 3], [7, 3, 0]])
    target_ids = np.array([[2, 4, 9, 5], [2, 8, 4, 7]])
    memory = model.encode(source_ids)
    expected = np.asarray(model.decode(target_ids, memory))
    cache = model.init_cache(memory, 4)
    for t in range(4):
        scores, cache = model.decode(target_ids[:, t : t + 1], memory, cache, t)
        np.testing.assert_allclose(scores[:, 0], expected[:, t], atol=1e-5)
    alone = model.decode(target_ids[1:], model.encode(source_ids[1:, :2]))
    np.testing.assert_allclose(alone[0], expected[1], atol=1e-5)


def test_refuses_to_show_a_target_side_what_it_is_to_predict():
    with pytest.raises(ValueError, match="Pass bidirectional=False"):
        Transformer(
            13, 11, 8, 16, 2, 1, 1, target_embedding_layer=RoleInteraction(3)
        )
    with pytest.raises(ValueError, match="positions='both'"):
        RoleInteraction(3, positions="both")
