"""What must be true of DepthScaledInitializer: in block l all kernels are
uniform over Glorot's range times alpha / sqrt(l), also those of layers in slots
and after saving; and without it nothing changes."""

import keras
import numpy as np
import pytest

from keras_deepnmt.layers import DepthScaledInitializer, HybridSelfAttention
from keras_deepnmt.models import Transformer


@pytest.mark.parametrize("alpha, depth", [(1.0, 1), (0.5, 1), (0.7, 9)])
def test_matches_the_equation(alpha, depth):
    kernel = DepthScaledInitializer(alpha).at_block(depth)((60, 40))
    limit = alpha / np.sqrt(depth) * np.sqrt(6 / (60 + 40))
    largest = np.abs(kernel).max()
    assert 0.98 * limit < largest <= limit * (1 + 1e-6)
    # Of a uniform distribution, whose values differ.
    assert np.std(kernel) == pytest.approx(limit / np.sqrt(3), rel=0.05)


def test_a_seed_is_kept_at_every_depth():
    first, again, other = (
        np.asarray(DepthScaledInitializer(seed=seed).at_block(3)((7, 5)))
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


def made(**options):
    # The largest of a small kernel is far below its range with some seeds.
    keras.utils.set_random_seed(0)
    return Transformer(11, 13, 64, 128, 2, 3, 2, **options)


def kernels(model):
    return [
        weight
        for weight in model.weights
        if "_block_" in weight.path and weight.name == "kernel"
    ]


def ranges(model):
    """The largest value of each kernel, as a multiple of Glorot's."""
    return {
        weight.path: np.abs(weight).max() / np.sqrt(6 / sum(weight.shape))
        for weight in kernels(model)
    }


def assert_scaled(model):
    found = ranges(model)
    assert len(found) >= 3 * 6 + 2 * 10
    for path, largest in found.items():
        depth = int(path.split("/")[0].rpartition("_")[2])
        # The largest of a hundred values or more.
        assert 0.95 < largest * depth**0.5 < 1 + 1e-5, path


def test_every_kernel_of_a_model_knows_its_depth():
    initializer = DepthScaledInitializer()
    model = made(
        kernel_initializer=initializer,
        encoder_self_attention=HybridSelfAttention(2),
    )
    assert_scaled(model)
    # Each is drawn by itself.
    firsts = {float(np.ravel(kernel)[0]) for kernel in kernels(model)}
    assert len(firsts) == len(kernels(model))
    assert_scaled(Transformer.from_config(model.get_config()))


def test_a_recipe_names_it():
    assert_scaled(made(kernel_initializer="DepthScaledInitializer"))
    named = {"DepthScaledInitializer": {"alpha": 0.5}}
    found = ranges(made(kernel_initializer=named))
    assert max(found.values()) == pytest.approx(0.5, rel=0.02)


def test_an_initializer_of_keras_serves_all_blocks():
    found = ranges(made(kernel_initializer="zeros"))
    assert set(found.values()) == {0.0}


def test_refuses_a_wrong_initializer():
    with pytest.raises(ValueError, match="`kernel_initializer` must be"):
        made(kernel_initializer="zerros")
    with pytest.raises(ValueError, match="alpha=0"):
        DepthScaledInitializer(0)
