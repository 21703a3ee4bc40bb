"""A recipe can be written from what the command line prints.

* a new recipe loads, and editors find the schema that it names
* the bundled recipes are listed
* a recipe is shown with all its values, and what is shown loads; one that
  `train` would refuse is refused
* all mistakes of a recipe are printed, one line each
"""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import jsonschema
import pytest
import yaml

from keras_deepnmt.recipes.loading import load_recipe


@pytest.mark.parametrize("words", [[], ["--preset", "dense_nmt_2_tiny"]])
def test_a_new_recipe_loads(deepnmt, words, tmp_path):
    done = deepnmt("recipe", "--new", *words)
    assert (done.code, done.err) == (0, "")
    file = tmp_path / "mine.yaml"
    file.write_text(done.out, encoding="utf-8")
    recipe = load_recipe(file)
    assert recipe.name == "mine"
    assert recipe.model.preset == (words or ["", "transformer_tiny"])[1]
    assert recipe.data.train[0].source == "train.de"
    # The commented keys are right, too.
    whole = re.sub(r"^( *)# (?=(  )*\w+:( |\n))", r"\1", done.out, flags=re.M)
    content = yaml.safe_load(whole)
    assert content["model"]["overrides"]["output_fusion"] == "SurfaceFusion"
    assert content["training"]["early_stopping_patience"] == 10


def test_an_editor_finds_the_schema_that_a_new_recipe_names(deepnmt):
    text = deepnmt("recipe", "--new").out
    named = re.match(r"# yaml-language-server: \$schema=(file://\S+)\n", text)
    file = Path(unquote(urlparse(named[1]).path))
    schema = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(text))
    assert json.loads(deepnmt("recipe", "--json-schema").out) == schema


def test_a_recipe_is_shown_with_all_its_values(deepnmt, tmp_path):
    name = "transformer_tiny.demo_de_en"
    done = deepnmt("recipe", "--show", name, "--set", "training.steps=3")
    assert (done.code, done.err) == (0, "")
    file = tmp_path / "shown.yaml"
    file.write_text(done.out, encoding="utf-8")
    assert load_recipe(file) == load_recipe(name, {"training.steps": 3})
    assert yaml.safe_load(done.out)["training"]["optimizer"]["beta_2"] == 0.98


def test_the_bundled_recipes_are_listed(deepnmt):
    done = deepnmt("recipe", "--list", "dense_nmt_?_tiny.multi30k_en_de")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "dense_nmt_1_tiny.multi30k_en_de",
        "dense_nmt_2_tiny.multi30k_en_de",
    ]
    assert "transformer_tiny.demo_de_en\n" in deepnmt("recipe", "--list").out
    shown = deepnmt("recipe", "--show", "dense_nmt_1_tiny.multi30k_en_de").out
    content = yaml.safe_load(shown)
    assert content["name"] == "dense_nmt_1_tiny.multi30k_en_de"
    assert content["model"]["preset"] == "dense_nmt_1_tiny"
    assert content["training"]["optimizer"]["name"] == "nesterov"
    assert "extends" not in content


def test_all_mistakes_are_printed_one_line_each(deepnmt, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(deepnmt("recipe", "--new").out, encoding="utf-8")
    changes = [
        "training.stepz=3",
        "training.objective.r_drop.alpha=-1",
        "decoding.num_beams=x",
    ]
    done = deepnmt("recipe", "--show", file, "--set", *changes)
    assert done.code == 2
    lines = done.err.splitlines()
    assert len(lines) == 3
    assert "did you mean `training.steps`?" in lines[0]
    assert "`training.objective.r_drop.alpha`" in lines[1]
    assert "`decoding.num_beams` must be an integer from 1" in lines[2]
    assert "Received: 'x'" in lines[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "model.overrides.encoder_self_attention={HybridSelfAttention: "
            "{windwo: 4}}",
            "windwo",
        ),
        ("model.overrides.num_haeds=2", "num_haeds"),
        ("model.preset=transformer_tin", "transformer_tiny"),
        ("training.loss=cross_entropi", "cross_entropy"),
        ("training.objective.r_dorp.alpha=1", "r_drop"),
        ("training.freeze=[encodre*]", "encodre"),
    ],
)
def test_a_recipe_is_shown_only_if_train_would_take_it(
    deepnmt, change, message
):
    done = deepnmt(
        "recipe", "--show", "transformer_tiny.demo_de_en", "--set", change
    )
    assert (done.code, done.out) == (2, "")
    assert message in done.err and len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give one of --list, --new, --show RECIPE and --json-schema"),
        (["--list", "everything_tine.*"], 'Did you mean "everything_tiny.'),
        (["--new", "--show", "x"], "Received: 2 of them"),
        (["--new", "--set", "a=3"], "`--set` belongs to --show RECIPE"),
        (["--json-schema", "--preset", "x"], "`--preset` belongs to --new"),
        (["--new", "--preset", "x_tiny"], "`--preset`: Unknown model"),
    ],
)
def test_options_that_do_not_go_together_are_refused(refused, words, message):
    assert message in refused("recipe", *words)
