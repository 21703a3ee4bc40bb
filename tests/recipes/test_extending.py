"""What must be true of recipes that extend others.

* sections and overrides are merged key by key, anything else is replaced
* an own held-out set replaces an inherited number of pairs, and the reverse
* options of another optimizer, schedule or loss are not taken over
* the message about a mistake names its file and line
* a recipe that extends itself, or one that is missing, is refused
* the merged recipe is the one that is shown and that a run records
"""

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import (
    load_recipe,
    recipe_content,
    save_recipe,
)

BASE = """\
seed: 5
model:
  preset: transformer_tiny
  overrides: {dropout: 0.2, output_fusion: {SurfaceFusion: {dropout: 0.1}}}
data:
  train: [{source: a.en, target: a.de}, {source: b.en, target: b.de}]
  valid: {name: newstest2013_en_de}
  vocabulary_size: 700
training:
  steps: 1000
  optimizer: {beta_2: 0.99, global_clipnorm: 1.0}
  learning_rate: {peak: 0.003, warmup_steps: 40}
  label_smoothing: 0.2
  objective: {r_drop: {alpha: 5}, scheduled_sampling: {probability: 0.5}}
"""


@pytest.fixture
def extended(tmp_path):
    """Writes a recipe that extends another one, and gives its path."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "plain.yaml").write_text(BASE, encoding="utf-8")

    def write(text, base="base/plain.yaml"):
        file = tmp_path / "mine.yaml"
        file.write_text(f"extends: {base}\n{text}", encoding="utf-8")
        return file

    return write


def test_a_recipe_takes_over_what_it_does_not_change(extended):
    file = extended("""\
model:
  overrides: {num_heads: 2, output_fusion: {SurfaceFusion: {mode: soft}}}
data:
  train: [{source: c.en, target: c.de}]
  valid: {source: v.en, target: v.de}
training: {steps: 7, objective: {scheduled_sampling: null}}
""")
    recipe = load_recipe(file)
    assert (recipe.name, recipe.seed) == ("mine", 5)
    assert recipe.model.preset == "transformer_tiny"
    assert recipe.model.overrides == {
        "dropout": 0.2,
        "num_heads": 2,
        "output_fusion": {"SurfaceFusion": {"mode": "soft"}},
    }
    assert [corpus.source for corpus in recipe.data.train] == ["c.en"]
    assert recipe.data.valid.name is None  # of another corpus
    assert recipe.data.vocabulary_size == 700
    assert recipe.training.steps == 7
    assert recipe.training.learning_rate.peak == 0.003
    assert list(recipe.training.objective) == ["r_drop"]
    assert load_recipe(file, {"training.steps": 3}).training.steps == 3


def test_corpora_with_tags_replace_those_of_the_base(extended):
    file = extended("""\
data:
  train:
    - {source: a.en, target: a.de, tag: "<2de>"}
    - {source: a.en, target: a.fr, tag: <2fr>, weight: 2}
  test: {name: newstest2014_en_de, tag: "<2de>"}
""")
    recipe = load_recipe(file)
    assert [corpus.tag for corpus in recipe.data.train] == ["<2de>", "<2fr>"]
    assert recipe.data.valid.tag is None
    assert recipe.data.tags() == ["<2de>", "<2fr>"]
    save_recipe(recipe, file, {})
    assert load_recipe(file) == recipe
    file.write_text(
        file.read_text().replace("tag: <2fr>", "tag: <2 fr>"), "utf-8"
    )
    with pytest.raises(UserError) as error:
        load_recipe(file)
    message = str(error.value)
    assert "mine.yaml, line" in message and "tag='<2 fr>'" in message
    assert "data.train[1].tag" in message or "data.train.1.tag" in message


@pytest.mark.parametrize(
    ("own", "changes", "expected"),
    [
        ("valid: {source: v, target: w}", {}, ("v", 0, None, 9)),
        ("valid: null", {}, (None, 20, None, 9)),
        ("test: {source: v, target: w}", {}, (None, 20, "v", 0)),
        ("seed: 3", {"data.valid.source": "v"}, ("v", 0, None, 9)),
        ("seed: 3", {"data.test_pairs": 5}, (None, 20, None, 5)),
    ],
)
def test_an_own_held_out_set_replaces_an_inherited_number_of_pairs(
    extended, tmp_path, own, changes, expected
):
    base = BASE.replace(
        "  valid: {name: newstest2013_en_de}", "  valid_pairs: 20"
    )
    base = base.replace("  vocabulary", "  test_pairs: 9\n  vocabulary")
    (tmp_path / "base" / "plain.yaml").write_text(base, encoding="utf-8")
    if "data.valid.source" in changes:
        changes = {**changes, "data.valid.target": "w"}
    data = load_recipe(extended(f"data: {{{own}}}\n"), changes).data
    sources = [one and one.source for one in (data.valid, data.test)]
    received = sources[0], data.valid_pairs, sources[1], data.test_pairs
    assert received == expected


def test_an_own_number_of_pairs_replaces_an_inherited_held_out_set(extended):
    data = load_recipe(extended("data: {valid_pairs: 7}\n")).data
    assert (data.valid, data.valid_pairs) == (None, 7)
    data = load_recipe(extended("seed: 1\n"), {"data.valid_pairs": 7}).data
    assert (data.valid, data.valid_pairs) == (None, 7)
    data = load_recipe(extended("data: {valid_pairs: 0}\n")).data
    assert data.valid.name == "newstest2013_en_de"
    both = "data: {valid: {source: v, target: w}, valid_pairs: 7}\n"
    with pytest.raises(UserError, match="not both"):
        load_recipe(extended(both))
    both = {"data.valid.source": "v", "data.valid.target": "w"}
    with pytest.raises(UserError, match="not both"):
        load_recipe(extended("seed: 1\n"), {**both, "data.valid_pairs": 7})


def test_an_own_size_of_batches_replaces_one_that_was_to_be_found(
    extended, tmp_path
):
    file = tmp_path / "base" / "plain.yaml"
    auto = "  batch_tokens: auto\n  effective_batch_tokens: 9000\n"
    file.write_text(f"{BASE}{auto}", encoding="utf-8")
    training = load_recipe(extended("training: {batch_tokens: 500}\n")).training
    assert training.batch_tokens == 500
    assert training.effective_batch_tokens is None
    own = "training: {effective_batch_tokens: 500}\n"
    training = load_recipe(extended(own)).training
    assert (training.batch_tokens, training.effective_batch_tokens) == (
        "auto",
        500,
    )


def test_the_options_of_a_term_are_merged(extended):
    file = extended("""\
training:
  steps: 7
  objective: {scheduled_sampling: {end_step: 9}, mine: {weight: 2}}
""")
    objective = load_recipe(file).training.objective
    assert list(objective) == ["r_drop", "scheduled_sampling", "mine"]
    assert objective["scheduled_sampling"].probability == 0.5
    assert objective["scheduled_sampling"].end_step == 9
    assert objective["mine"] == {"weight": 2}


def test_options_of_another_choice_are_not_taken_over(extended):
    recipe = load_recipe(
        extended("""\
training:
  optimizer: {name: nesterov}
  learning_rate: {schedule: noam, scale: 2.0}
  loss: cross_entropy
""")
    )
    training = recipe.training
    assert training.optimizer.beta_2 is None
    assert training.optimizer.global_clipnorm == 1.0  # of any optimizer
    assert training.learning_rate.peak is None
    assert training.learning_rate.warmup_steps == 4000
    assert training.label_smoothing is None
    same = "training: {learning_rate: {schedule: inverse_square_root}}"
    assert load_recipe(extended(same)).training.learning_rate.peak == 0.003


def test_overrides_leave_out_options_of_another_choice(extended):
    changes = {
        "training.learning_rate.warmup_steps": 70,
        "training.learning_rate.schedule": "plateau",
        "training.optimizer.name": "nesterov",
        "training.loss": "cross_entropy",
    }
    file = extended("training: {learning_rate: {peak: 0.002}}\n")
    training = load_recipe(file, changes).training
    assert training.optimizer.beta_2 is None
    assert training.optimizer.global_clipnorm == 1.0  # of any optimizer
    assert training.learning_rate.peak == 0.001
    assert training.learning_rate.warmup_steps == 70
    assert training.label_smoothing is None
    # The choice that the file has.
    same = {"training.learning_rate.schedule": "inverse_square_root"}
    assert load_recipe(file, same).training.learning_rate.peak == 0.002
    own = {**changes, "training.optimizer.beta_2": 0.9}
    with pytest.raises(UserError, match="`beta_2` belongs to `name: adam or"):
        load_recipe(file, own)


def test_recipes_extend_each_other_in_a_row(extended, tmp_path):
    middle = tmp_path / "base" / "middle.yaml"
    middle.write_text("extends: plain.yaml\nname: x\nseed: 6\n")
    recipe = load_recipe(extended("training: {steps: 7}", "base/middle.yaml"))
    assert (recipe.name, recipe.seed) == ("mine", 6)
    assert recipe.model.overrides["dropout"] == 0.2
    bundled = load_recipe(extended("seed: 9", "transformer_tiny.demo_de_en"))
    plain = load_recipe("transformer_tiny.demo_de_en")
    assert bundled.training == plain.training and bundled.seed == 9


def test_a_mistake_is_told_where_it_stands(extended, tmp_path):
    base = tmp_path / "base" / "plain.yaml"
    base.write_text(BASE.replace("beta_2: 0.99", "beta_2: 2"))
    file = extended("training: {stepz: 3, objective: {r_drop: {alpha: -1}}}\n")
    with pytest.raises(UserError) as info:
        load_recipe(file)
    first, second, third = str(info.value).splitlines()
    assert first.startswith(f"{file}, line 2: `training.stepz` is unknown")
    assert second.startswith(
        f"{file}, line 2: `training.objective.r_drop.alpha`"
    )
    assert third.startswith(f"{base}, line 11: `training.optimizer.beta_2`")


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (
            "mine.yaml",
            "must not extend itself. Received: .*mine.yaml -> ",
        ),
        ("base/../mine.yaml", "must not extend itself"),
        ("base/plane.yaml", "plane.yaml. is neither a file nor a bundled"),
        ("transformer_tiny.demo_de", "Did you mean .transformer_tiny.demo_de_"),
        ("[a, b]", "`extends` must be"),
    ],
)
def test_a_wrong_base_is_refused(extended, base, message):
    file = extended("seed: 3", base)
    with pytest.raises(UserError, match=message) as info:
        load_recipe(file)
    assert str(info.value).startswith(f"{file}, line 1: `extends`")


def test_a_base_that_is_no_mapping_is_refused(extended, tmp_path):
    (tmp_path / "base" / "plain.yaml").write_text("- a\n")
    with pytest.raises(UserError, match="plain.yaml, line 1: the recipe must"):
        load_recipe(extended("seed: 3"))


def test_extends_cannot_be_overridden(extended):
    with pytest.raises(UserError, match="`extends` must be in the file"):
        load_recipe(extended("seed: 3"), {"extends": "x"})


def test_the_merged_recipe_is_recorded(extended, tmp_path):
    recipe = load_recipe(extended("training: {steps: 7}"))
    assert recipe.extends == "base/plain.yaml"
    assert "extends" not in recipe_content(recipe)
    save_recipe(recipe, tmp_path / "recipe.yaml", {})
    assert load_recipe(tmp_path / "recipe.yaml") == recipe
