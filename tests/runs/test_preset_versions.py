"""What must be true of runs whose preset has changed since they were started:
their model is the one that the preset's name stood for then."""

import dataclasses

import pytest

from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.build import build_model, preset_version
from keras_deepnmt.zoo.registry import PRESET_VERSION

SIZES = {"source_vocabulary_size": 13, "target_vocabulary_size": 13}
SMALL = {
    "model.preset": "transformer_small",
    "model.overrides": dict(
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
    ),
}


@pytest.fixture
def recipe(recipe_file):
    return load_recipe(recipe_file, SMALL)


@pytest.mark.parametrize(
    "resolved, version, is_shared",
    [
        ({}, PRESET_VERSION, True),
        # What runs of the first version recorded.
        ({"versions": {"keras": "3"}}, 1, False),
        ({"preset_version": 1}, 1, False),
        ({"preset_version": 2}, 2, True),
    ],
)
def test_a_run_keeps_the_model_it_was_started_with(
    recipe, resolved, version, is_shared
):
    recipe = dataclasses.replace(recipe, resolved=resolved)
    assert preset_version(recipe) == version
    model = build_model(recipe, SIZES)
    shares = model.source_embedding is model.target_embedding
    assert shares == is_shared
