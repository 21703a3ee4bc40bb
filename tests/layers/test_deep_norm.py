"""What must be true of DeepNorm: it is LN(alpha x + G(x)) with the constants of
the paper's table, which depend on the stack and both depths, and kernels have
the gain beta, except those of queries and keys."""

import numpy as np
import pytest

from keras_deepnmt.layers import DeepNorm
from keras_deepnmt.models import Transformer

B, T, D = 3, 5, 7


def reference(x, y, alpha, epsilon):
    total = alpha * x + y
    mean = total.mean(-1, keepdims=True)
    return (total - mean) / np.sqrt(total.var(-1, keepdims=True) + epsilon)


@pytest.mark.parametrize(
    ("stack", "alpha", "beta"),
    [
        # 0.81 (18^4 6)^(1/16) and 0.87 (18^4 6)^(-1/16)
        ("encoder", 1.86611, 0.37763),
        # (3 6)^(1/4) and (12 6)^(-1/4)
        ("decoder", 2.05977, 0.34329),
    ],
)
def test_matches_the_equation(stack, alpha, beta):
    layer = DeepNorm(stack, 18, 6, dropout=0.0)
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, B, T, D)).astype("float32")
    expected = reference(x, y, alpha, layer.layer_norm_epsilon)
    np.testing.assert_allclose(layer(x, y), expected, atol=1e-4)
    np.testing.assert_array_equal(layer.before(x), x)
    assert layer.alpha == pytest.approx(alpha, abs=1e-5)
    assert layer.beta == pytest.approx(beta, abs=1e-5)


@pytest.fixture(scope="module")
def model():
    return Transformer(11, 13, 64, 128, 2, 3, 2, residual_connection=DeepNorm())


def gain(kernel):
    """The deviation of a kernel, as a multiple of Glorot's."""
    return np.std(kernel) * np.sqrt(sum(kernel.shape) / 2)


def test_every_kernel_of_a_model_has_its_gain(model):
    betas = {
        "encoder": 0.87 * (3**4 * 2) ** (-1 / 16),
        "decoder": (12 * 2) ** (-1 / 4),
    }
    seen = 0
    for weight in model.weights:
        stack = weight.path.partition("_")[0]
        if weight.name != "kernel" or stack not in betas:
            continue
        part = weight.path.split("/")[-2]
        seen += 1
        expected = 1.0 if part in ("query", "key") else betas[stack]
        kernel = np.asarray(weight)
        # A normal distribution that is not cut off at two deviations.
        assert np.abs(kernel).max() > 2.5 * np.std(kernel)
        found = gain(kernel)
        assert found == pytest.approx(expected, rel=0.08), weight.path
    assert seen == 3 * (4 + 2) + 2 * (8 + 2)


def test_every_residual_connection_of_a_model_knows_its_stack(model):
    for stack in ("encoder", "decoder"):
        for block in getattr(model, f"{stack}_blocks"):
            residuals = [block.attention_residual, block.feed_forward_residual]
            if stack == "decoder":
                residuals.append(block.cross_attention_residual)
            for residual in residuals:
                assert isinstance(residual, DeepNorm)
                config = residual.get_config()
                assert config["stack"] == stack
                assert config["num_encoder_layers"] == 3
                assert config["num_decoder_layers"] == 2


def test_a_model_keeps_the_depths_that_it_is_given():
    own = DeepNorm(num_encoder_layers=18)
    model = Transformer(11, 13, 8, 16, 2, 1, 1, residual_connection=own)
    (block,) = model.encoder_blocks
    found = block.attention_residual.get_config()
    assert (found["num_encoder_layers"], found["num_decoder_layers"]) == (18, 1)


def test_the_options_of_a_model_take_the_place_of_its_own():
    own = DeepNorm(dropout=0.3, layer_norm_epsilon=0.5)
    model = Transformer(
        *(11, 13, 8, 16, 2, 1, 1),
        residual_connection=own,
        dropout=0.2,
        layer_norm_epsilon=0.25,
    )
    (block,) = model.encoder_blocks
    found = block.attention_residual
    assert (found.dropout, found.layer_norm_epsilon) == (0.2, 0.25)


def test_outside_a_model_the_depths_must_be_given():
    with pytest.raises(ValueError, match="num_decoder_layers=None"):
        DeepNorm(num_encoder_layers=3)(*np.ones((2, B, T, D)))


def test_pre_norm_is_refused_by_name():
    with pytest.raises(ValueError, match="normalize_first=True with DeepNorm"):
        Transformer(
            *(11, 13, 8, 16, 2, 1, 1),
            residual_connection="DeepNorm",
            normalize_first=True,
        )
