"""What must be true of the recipes of the package.

* every one loads, under its own name, with a known preset
* the recipe of a plain model can be used with each preset compared with it
* a recipe of a preset trains it exactly as the plain model is trained
* the temperature of one-hot roles comes to its minimum before the end
* every recipe's model can be built, and is not the plain one by mistake
"""

import dataclasses
import functools
import re

import pytest

from benchmarks.quality.rows.row_list import presets_of
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes import list_recipes, load_recipe
from keras_deepnmt.recipes.bundled import bundled_text, plain_presets
from keras_deepnmt.recipes.reference import schema_file
from keras_deepnmt.training import TemperatureDecay
from keras_deepnmt.zoo import create_model, list_models
from keras_deepnmt.zoo.registry import get_preset

ROWS = presets_of("multi30k")
load_recipe_once = functools.cache(load_recipe)
FILES = sorted(file.stem for file in schema_file().parent.glob("files/*"))


@pytest.mark.parametrize("name", FILES)
def test_recipes_with_a_file_load(name):
    recipe = load_recipe_once(name)
    assert recipe.name == name
    assert recipe.model.preset in list_models()
    assert name.split(".")[0] == recipe.model.preset


def test_other_recipes_change_the_preset_alone():
    names = list_recipes()
    assert len(names) == len(set(names))
    for name in set(names) - set(FILES):
        preset, corpus = name.split(".")
        plain = plain_presets()[preset]
        assert preset in list_models()
        assert f"{plain}.{corpus}" in FILES
        text = f"extends: {plain}.{corpus}\nmodel:\n  preset: {preset}\n"
        if "_onehot_" in preset:
            text += "training:\n  temperature: "
        found = bundled_text(name)
        assert found.startswith(text)
        rest = found.removeprefix(text)
        assert re.fullmatch(r"{(factor: 0\.\d{4})?}\n", rest) or not rest


@pytest.mark.parametrize(
    "name",
    [name for name in list_recipes() if "_onehot_tiny" in name],
)
def test_the_temperature_of_onehot_roles_falls_to_its_minimum(name):
    training = load_recipe_once(name).training
    decay = TemperatureDecay(
        training.temperature.start,
        training.temperature.factor,
        training.temperature.minimum,
    )
    assert decay.temperature(0) > 2 * decay.temperature(training.steps)
    assert decay.temperature(round(0.85 * training.steps)) == pytest.approx(
        training.temperature.minimum
    )


def test_all_rows_of_multi30k_are_trained_as_their_plain_model():
    assert len(ROWS) == 16
    for preset, plain in ROWS.items():
        expected = load_recipe_once(f"{plain or preset}.multi30k_en_de")
        recipe = load_recipe_once(f"{preset}.multi30k_en_de")
        assert recipe.name == f"{preset}.multi30k_en_de"
        assert recipe.model.preset == preset
        training = dataclasses.replace(recipe.training, temperature=None)
        assert training == expected.training
        assert recipe.model.overrides == expected.model.overrides
        assert recipe.data == expected.data
        assert recipe.decoding == expected.decoding
        assert recipe.evaluation == expected.evaluation
        assert recipe.seed == expected.seed


def test_every_tiny_preset_has_a_recipe_for_both_small_corpora():
    names = set(list_recipes())
    for preset in list_models("*_tiny*"):
        assert f"{preset}.multi30k_en_de" in names
        assert f"{preset}.demo_de_en" in names


def test_every_tiny_transformer_has_recipes_for_summaries_and_corrections():
    names = set(list_recipes())
    for preset, plain in plain_presets().items():
        if plain == "transformer_tiny":
            for corpus in ("scitldr", "jfleg", "ua_gec"):
                assert f"{preset}.{corpus}" in names


def test_the_temperature_of_one_hot_roles_falls():
    for name in list_recipes("*_onehot_*"):
        assert load_recipe_once(name).training.temperature is not None, name


def test_every_preset_takes_the_overrides_of_its_recipe():
    for name in FILES:
        model = load_recipe_once(name).model
        get_preset(model.preset).arguments(11, 11, **model.overrides)
    for name in set(list_recipes()) - set(FILES):
        preset, corpus = name.split(".")
        plain = load_recipe_once(f"{plain_presets()[preset]}.{corpus}")
        get_preset(preset).arguments(11, 11, **plain.model.overrides)


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "name",
    [
        "everything_tiny.multi30k_en_de",
        "multi_layer_attention_k3_tiny.demo_de_en",
        "dense_nmt_2_tiny.demo_de_en",
        "hybrid_self_attention_gated_small.iwslt14_de_en",
        "role_interaction_softmax_small.iwslt14_de_en",
        "dense_nmt_2_4l.iwslt14_de_en",
    ],
)
def test_a_sample_of_the_models_is_built(name):
    model = load_recipe_once(name).model
    built = create_model(model.preset, 11, 11, **model.overrides)
    assert built.count_params() > 0


def test_attention_to_lower_layers_has_such_layers_in_every_recipe():
    for name in [*list_recipes("multi_layer_*"), *list_recipes("everything_*")]:
        model = load_recipe_once(name).model
        arguments = get_preset(model.preset).arguments(
            11, 11, **model.overrides
        )
        layer = arguments["encoder_self_attention"]
        assert arguments["num_encoder_layers"] > layer.num_layers, name
        assert arguments["num_decoder_layers"] > layer.num_layers, name


def test_the_matched_model_of_the_demo_corpus_has_as_many_parameters():
    def count(preset):
        recipe = load_recipe_once(f"{preset}.demo_de_en")
        size = recipe.data.vocabulary_size
        overrides = recipe.model.overrides
        return create_model(preset, size, size, **overrides).count_params()

    with_roles = count("role_interaction_dense_tiny")
    # The width is a multiple of the number of heads.
    assert abs(count("transformer_tiny_matched") / with_roles - 1) < 0.02


def test_a_preset_with_other_plain_models_has_no_such_recipe():
    assert "transformer_base.demo_de_en" not in list_recipes()
    with pytest.raises(UserError, match="neither a file nor a bundled recipe"):
        load_recipe("everything_tiny.multi31k_en_de")
