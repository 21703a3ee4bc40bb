"""What must be true of the JSON Schema that editors check recipes with.

* it accepts every bundled recipe, and what a run folder holds
* it refuses what `load_recipe` refuses: unknown keys, wrong types and values
* it offers the presets, and the layers of each slot
"""

import json

import jsonschema
import pytest
import yaml

from keras_deepnmt.recipes.bundled import bundled_text
from keras_deepnmt.recipes.loading import load_recipe, recipe_content
from keras_deepnmt.recipes.reference import schema_file
from keras_deepnmt.zoo import list_models

FILES = sorted(file.stem for file in schema_file().parent.glob("files/*"))


@pytest.fixture(scope="module")
def schema():
    return json.loads(schema_file().read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def validator(schema):
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("name", FILES)
def test_recipes_are_valid(name, validator):
    recipe = load_recipe(name)
    validator.validate(recipe_content(recipe))
    validator.validate(yaml.safe_load(bundled_text(name)))


def test_a_recipe_that_extends_another_needs_to_give_nothing(validator):
    changed = {"extends": FILES[0], "training": {"label_smoothing": 0.2}}
    validator.validate(changed)
    assert not validator.is_valid({"training": changed["training"]})
    assert not validator.is_valid({**changed, "extends": ["a", "b"]})


@pytest.mark.parametrize(
    "changes",
    [
        {"training": {"stepz": 3}},
        {"training": {"steps": "many"}},
        {"training": {}},
        {"training": {"steps": 0}},
        {"training": {"steps": 3, "objective": {"r_drop": {"alpha": -1}}}},
        {"training": {"steps": 3, "objective": {"r_drop": {}}}},
        {"training": {"steps": 3, "precision": "float8"}},
        {"decoding": {"num_beams": 1.5}},
        {"data": {"train": {"source": "a"}}},
        {"model": {}},
    ],
)
def test_mistakes_are_not_valid(changes, validator):
    recipe = {"model": {"preset": "x"}, "training": {"steps": 3}}
    assert validator.is_valid(recipe)
    assert not validator.is_valid({**recipe, **changes})


def test_presets_and_layers_are_offered(schema):
    model = schema["properties"]["model"]["properties"]
    assert model["preset"]["anyOf"][0]["enum"] == list_models()
    slot = model["overrides"]["properties"]["encoder_fusion"]
    assert slot["anyOf"][0]["enum"] == ["FineGrainedLayerAttention"]
