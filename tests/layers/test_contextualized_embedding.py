"""What must be true of ContextualizedEmbedding: it adds a linear map of the
roles, which are those of role interaction, and nothing else; step by step it
gives the same."""

import numpy as np
import pytest

from keras_deepnmt.layers import ContextualizedEmbedding, RoleInteraction

B, S, D, R = 3, 7, 5, 11


@pytest.fixture
def inputs():
    random = np.random.default_rng(0)
    return random.normal(size=(B, S, D)).astype("float32")


def test_adds_a_linear_map_of_the_roles(inputs):
    layer = ContextualizedEmbedding(R)
    output, roles = layer(inputs, return_roles=True)
    kernel = np.asarray(layer.role_embedding.kernel)
    np.testing.assert_allclose(output, roles @ kernel + inputs, atol=1e-5)
    # The roles are those of role interaction.
    other = RoleInteraction(R)
    other.build((B, S, D))
    other.roles.set_weights(layer.roles.get_weights())
    np.testing.assert_allclose(
        other(inputs, return_roles=True)[1], roles, atol=1e-6
    )


def test_step_by_step_gives_the_same(inputs):
    layer = ContextualizedEmbedding(R, bidirectional=False)
    expected = np.asarray(layer(inputs))
    cache = layer.init_cache(B, S)
    for t in range(S):
        found, cache = layer(inputs[:, t : t + 1], cache=cache, cache_index=t)
        np.testing.assert_allclose(found, expected[:, t : t + 1], atol=1e-5)


@pytest.mark.parametrize(
    "width, num_roles, number", [(256, 16, 4_096), (512, 32, 16_384)]
)
def test_the_number_of_parameters_is_exact(width, num_roles, number):
    layer = ContextualizedEmbedding(num_roles)
    layer.build((None, None, width))
    assert layer.count_params() - layer.roles.count_params() == number
