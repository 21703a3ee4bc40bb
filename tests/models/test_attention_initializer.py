"""What must be true of the attention's initializer: one argument of a model
reaches every query, key and value projection, also of layers in slots; a slot's
own initializer wins; saved models keep it; and a wrong one is refused."""

import keras
import numpy as np
import paper_slots
import pytest

from keras_deepnmt import create_model
from keras_deepnmt.layers import HybridSelfAttention, MultiHeadAttention
from keras_deepnmt.models import Transformer

V, D, F, N = 11, 8, 16, paper_slots.NUM_HEADS
PROJECTIONS = ("query", "key", "value")


def small(**options):
    layers = paper_slots.NUM_LAYERS
    return Transformer(V, V, D, F, N, layers, layers, **options)


def kernels(model):
    """The kernels of all query, key and value projections, by path."""
    return {
        weight.path: np.asarray(weight)
        for weight in model.weights
        if weight.path.split("/")[-2:-1]
        and weight.path.split("/")[-2] in PROJECTIONS
        and weight.name == "kernel"
    }


@pytest.mark.parametrize(
    "slots",
    [
        pytest.param(dict, id="plain"),
        pytest.param(paper_slots.one_choice, id="one choice"),
        pytest.param(
            paper_slots.another_choice,
            id="another choice",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_an_initializer_reaches_every_projection_of_both_stacks(slots):
    model = small(attention_initializer="zeros", **slots())
    found = kernels(model)
    attentions = {path.rsplit("/", 2)[0] for path in found}
    assert len(found) == 3 * len(attentions) >= 3 * 9
    assert [path for path, kernel in found.items() if kernel.any()] == []
    again = Transformer.from_config(model.get_config())
    assert [
        path for path, kernel in kernels(again).items() if kernel.any()
    ] == []


def test_without_it_projections_start_with_a_tenth_of_glorots_variance():
    limit = (0.1 * 6 / (D + D)) ** 0.5
    for path, kernel in kernels(small(**paper_slots.one_choice())).items():
        assert 0.8 * limit < np.abs(kernel).max() <= limit, path


def test_a_layer_in_a_slot_keeps_an_initializer_of_its_own():
    hybrid = HybridSelfAttention(N, fusion="sum", kernel_initializer="ones")
    model = small(encoder_self_attention=hybrid, attention_initializer="zeros")
    for path, kernel in kernels(model).items():
        is_hybrid = "encoder_block" in path
        assert np.all(kernel == (1.0 if is_hybrid else 0.0)), path


@pytest.mark.thorough
def test_it_is_an_argument_of_every_preset_and_kept_when_saved(tmp_path):
    model = create_model(
        "multi_layer_attention_k2_tiny",
        V,
        V,
        hidden_dim=D,
        intermediate_dim=F,
        num_heads=N,
        attention_initializer=keras.initializers.GlorotUniform(),
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    config = loaded.get_config()["attention_initializer"]
    assert config["class_name"] == "GlorotUniform"
    limit = (6 / (D + D)) ** 0.5
    for path, kernel in kernels(
        Transformer.from_config(loaded.get_config())
    ).items():
        assert 0.8 * limit < np.abs(kernel).max() <= limit, path


def test_a_config_without_it_is_loaded():
    config = small(**paper_slots.one_choice()).get_config()
    del config["attention_initializer"]
    # Older versions wrote the initializer of every attention in a slot.
    slot = config["encoder_self_attention"]["config"]["attention"]
    slot["config"]["kernel_initializer"] = keras.initializers.serialize(
        keras.initializers.VarianceScaling(0.1, "fan_avg", "uniform")
    )
    loaded = Transformer.from_config(config)
    assert loaded.get_config()["attention_initializer"] is None


def test_an_unknown_initializer_is_refused():
    with pytest.raises(
        ValueError, match="`attention_initializer` must be .*'gloro"
    ):
        small(attention_initializer="glorot")


def test_the_projections_of_one_attention_differ():
    layer = MultiHeadAttention(N, kernel_initializer="glorot_uniform")
    layer.build((None, None, D))
    query, key, value = (
        np.asarray(getattr(layer, f"{name}_projection").kernel)
        for name in PROJECTIONS
    )
    assert not np.allclose(query, key)
    assert not np.allclose(key, value)
