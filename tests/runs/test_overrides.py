"""Which values `model.overrides` of a recipe may have.

* lists with a value for each layer, where the model takes them
* layers by name in slots for which the preset has a number
* other values of another type than the preset's are refused
"""

import dataclasses

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.build import build_model

CONV = "conv_seq2seq_tiny"
DIVERSE = "layer_aggregation_hierarchical_diversity_tiny"
SIZES = {"source_vocabulary_size": 11, "target_vocabulary_size": 11}
SHALLOW = {"num_encoder_layers": 2, "num_decoder_layers": 2}


def build(preset, **overrides):
    recipe = load_recipe("transformer_tiny.demo_de_en")
    model = dataclasses.replace(
        recipe.model, preset=preset, overrides=overrides
    )
    return build_model(dataclasses.replace(recipe, model=model), SIZES)


@pytest.mark.parametrize(
    "overrides",
    [
        {"kernel_size": [3, 1]},
        {"hidden_dim": [8, 16]},
        {"growth_dim": [4, 8], "encoder_connection": "dense"},
    ],
    ids=str,
)
def test_a_list_has_a_value_for_each_layer(overrides):
    config = build(CONV, **SHALLOW, **overrides).get_config()
    assert overrides.items() <= config.items()


@pytest.mark.parametrize(
    "layer", ["LayerDiversity", {"LayerDiversity": {"weight": 0.5}}], ids=str
)
def test_a_named_layer_takes_the_place_of_a_number(layer):
    model = build(DIVERSE, **SHALLOW, layer_diversity=layer)
    weight = 1.0 if layer == "LayerDiversity" else 0.5
    assert model.encoder_diversity.weight == weight


@pytest.mark.parametrize(
    ("preset", "key", "value", "message"),
    [
        (CONV, "kernel_size", [3, 1.5], "integer, or a list of one for each"),
        (CONV, "kernel_size", "x", "integer, or a list of one for each"),
        (CONV, "kernel_size", [3, 1, 1], "an entry for each layer"),
        (CONV, "max_length", [64, 64], "must be an integer. Received"),
        (DIVERSE, "hidden_dim", [8, 8], "must be an integer. Received"),
        (DIVERSE, "layer_diversity", [0.5], "must be a number. Received"),
        (DIVERSE, "layer_diversity", "LayerDropp", "LayerDiversity"),
        (DIVERSE, "layer_diversity", {"LayerDrop": {}}, "LayerDrop"),
    ],
)
def test_other_types_are_refused(preset, key, value, message):
    with pytest.raises(UserError, match=message):
        build(preset, **{key: value})
