"""The searches of a run, of its validations and of its final model."""

import pytest

from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator


@pytest.mark.thorough
def test_it_has_its_own_beams_and_no_groups(
    recipe_file, prepared_dir, tmp_path, monkeypatch
):
    seen = []

    def translate(translator, texts):
        seen.append((translator.num_beams, translator.num_groups))
        return list(texts)

    monkeypatch.setattr(Translator, "translate", translate)
    changes = {
        "training.steps": 1,
        "training.validate_every": 1,
        "training.validation_beams": 4,
        "training.validation_budget": None,
        "decoding.num_beams": 6,
        "decoding.num_groups": 3,
    }
    recipe = load_recipe(recipe_file, changes)
    train(recipe, tmp_path, prepared_dir=prepared_dir, quiet=True)
    # Then that of the final model, which has the groups.
    assert seen == [(4, 1), (6, 3)]


@pytest.mark.thorough
def test_without_xla_no_search_is_compiled(
    recipe_file, prepared_dir, tmp_path, capsys
):
    changes = {"training.steps": 1, "training.jit_compile": False}
    recipe = load_recipe(recipe_file, changes)
    train(recipe, tmp_path, prepared_dir=prepared_dir)
    printed = capsys.readouterr().err
    assert "The final model is" in printed
    assert "compiling" not in printed
