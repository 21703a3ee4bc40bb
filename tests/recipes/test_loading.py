"""What must be true of reading recipes.

* every recipe of the package loads, under its own name, with a known preset
* a mistake is told in one line: file, line, key, rule, nearest right one
* what is saved reads back as the same recipe
"""

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import (
    flatten_recipe,
    list_recipes,
    load_recipe,
    save_recipe,
)
from keras_deepnmt.zoo import list_models

GOOD = """\
seed: 5
name: transformer_tiny.toy
model:
  preset: transformer_tiny
  overrides: {dropout: 0.2}
data:
  train:
    - source: train.en
      target: train.de
    - source: more.en
      target: more.de
      weight: 2
  valid: {source: valid.en, target: valid.de}
training:
  steps: 1000
  learning_rate:
    warmup_steps: 40
  optimizer: {epsilon: 1e-9}
"""


@pytest.fixture
def written(tmp_path):
    """Writes a recipe with one thing replaced, and gives its path."""

    def write(old="", new=""):
        file = tmp_path / "toy.yaml"
        assert old in GOOD
        file.write_text(GOOD.replace(old, new), encoding="utf-8")
        return file

    return write


@pytest.mark.parametrize("name", list_recipes())
def test_recipes_of_the_package_load(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.model.preset in list_models()
    assert name.startswith(recipe.model.preset)


def test_values_have_the_types_of_the_schema(written):
    recipe = load_recipe(written())
    assert recipe.training.optimizer.epsilon == 1e-9
    assert recipe.training.optimizer.global_clipnorm is None
    assert recipe.data.train[1].weight == 2.0
    assert recipe.data.valid.source == "valid.en"
    assert recipe.model.overrides == {"dropout": 0.2}


def test_overrides_replace_the_files_values(written):
    changes = {"training.steps": 7, "decoding.num_beams": 3, "seed": 11}
    recipe = load_recipe(written(), changes)
    assert recipe.training.steps == 7
    assert recipe.decoding.num_beams == 3
    assert recipe.seed == 11


@pytest.mark.parametrize(
    "old, new, line, message",
    [
        (
            "warmup_steps",
            "warmpup_steps",
            17,
            "`training.learning_rate.warmpup_steps` is unknown; did you mean "
            "`training.learning_rate.warmup_steps`?",
        ),
        ("training:", "trainig:", 14, "`trainig` is unknown; did you mean"),
        ("weight: 2", "wieght: 2", 12, "`data.train.1.wieght` is unknown"),
        ("steps: 1000", "steps: many", 15, "`training.steps` must be int. "),
        ("steps: 1000", "steps: 1.5", 15, "Received: 1.5"),
        ("steps: 1000", "steps: -3", 15, "must be above zero. Received: -3"),
        (
            "steps: 1000",
            "steps: 1000\n  r_drop: .inf",
            None,
            "`r_drop` must be finite. Received: inf",
        ),
        (
            "warmup_steps:",
            "peak: .nan\n    warmup_steps:",
            17,
            "`peak` must be finite. Received: nan",
        ),
        ("steps: 1000", "steps: null", 15, "`training.steps` must be int. "),
        ("steps: 1000", "dtype_policy: x", 15, "'float32' or 'mixed_bfloat16'"),
        ("  steps: 1000\n", "", None, "`training.steps` is missing"),
        ("weight: 2", "weight: 0", 12, "must be positive"),
        ("overrides: {dropout: 0.2}", "overrides: 3", 5, "model.overrides"),
        ("  overrides: {", "  overrides: {{", 6, "not YAML"),
        ("  train:\n    - ", "  train:\n    ", None, "not YAML"),
        ("data:\n", "data: 3\nseeds:\n", 7, "`seeds` is unknown; did you"),
        ("seed: 5", "seed: 5\nseed: 6", 2, "`seed` is given twice, first in"),
        ("seed: 5", "seed: {a: 5}", 1, "`seed` must be int"),
        (
            "seed: 5",
            "decoding: {length_offset: -1}",
            1,
            "`decoding.length_offset`: `length_offset` must be a finite number "
            "of at least 0. Received: length_offset=-1.0. Take 5 for",
        ),
        (
            "{dropout: 0.2}",
            "{}\nx: 3",
            6,
            "`x` is unknown; possible here: name, ",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(written, old, new, line, message):
    file = written(old, new)
    with pytest.raises(UserError) as info:
        load_recipe(file)
    text = str(info.value)
    assert message in text
    assert text.startswith(str(file))
    assert "\n" not in text
    if line is not None:
        assert f", line {line}:" in text


def test_a_wrong_override_is_refused_with_the_nearest_key(written):
    with pytest.raises(UserError, match="did you mean `training.steps`"):
        load_recipe(written(), {"training.stepz": 7})
    with pytest.raises(UserError, match="`seed` is a value"):
        load_recipe(written(), {"seed.first": 7})


def test_a_wrong_name_is_refused_with_the_nearest_one():
    with pytest.raises(UserError, match="transformer_tiny.multi30k_en_de"):
        load_recipe("transformer_tiny.multi30k_ende")


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    file = tmp_path / "toy.yaml"
    file.write_bytes(b"name: \xff\n")
    with pytest.raises(UserError, match="toy.yaml: not UTF-8 at byte 6"):
        load_recipe(file)


def test_a_saved_recipe_reads_back_equal(written, tmp_path):
    recipe = load_recipe(written())
    file = tmp_path / "recipe.yaml"
    save_recipe(recipe, file, {"versions": {"keras": "3"}})
    again = load_recipe(file)
    assert again == recipe
    assert again.resolved == {"versions": {"keras": "3"}}
    assert flatten_recipe(again)["training.steps"] == 1000
