"""What must be true of reading recipes.

* a mistake is reported in one line: file, line, key, rule, nearest known name
* a saved recipe reads back as the same recipe
* a few lines that stand for a great many values are refused at once
"""

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import (
    flatten_recipe,
    load_recipe,
    save_recipe,
)

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


def lists(levels, inside=""):
    return "[" * levels + inside + "]" * levels


TENFOLD = "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]"
    for before, name in zip("abcd", "bcde", strict=True)
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            f"a: &a [{', '.join('x' * 10)}]\n{TENFOLD}",
            "line 5: must .* 100,000",
        ),
        ("a: &a [*a]", "line 1: must have at most 50 levels"),
        ("a: &a {b: *a}", "line 1: must have at most 50 levels"),
        (lists(51), "line 1: must have at most 50 levels"),
        (f"a: &a {lists(30)}\nb: {lists(30, '*a')}", "line 2: must .* 50 lev"),
    ],
)
def test_aliases_and_levels_that_grow_without_end_are_refused(
    tmp_path, content, said
):
    file = tmp_path / "given.yaml"
    file.write_text(content)
    with pytest.raises(UserError, match=f"given.yaml, {said}") as info:
        load_recipe(file)
    assert "\n" not in str(info.value)


def test_a_recipe_that_is_too_long_is_refused(tmp_path):
    file = tmp_path / "given.yaml"
    file.write_text("#" * 1_000_001)
    with pytest.raises(UserError, match="at most 1,000,000 characters"):
        load_recipe(file)


def test_an_alias_is_the_same_as_what_it_stands_for(written):
    valid = "valid: {source: valid.en, target: valid.de}"
    twice = valid.replace(": {", ": &same {") + "\n  test: *same"
    data = load_recipe(written(valid, twice)).data
    assert data.test == data.valid


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


def test_overrides_switch_on_a_section_that_is_null(written):
    file = written("valid: {source: valid.en, target: valid.de}", "valid: null")
    changes = {
        "data.valid.source": "v",
        "data.valid.target": "w",
        "training.temperature.start": 3,
    }
    off = "steps: 1000\n  temperature: null"
    file.write_text(file.read_text().replace("steps: 1000", off))
    recipe = load_recipe(file, changes)
    assert recipe.data.valid.target == "w"
    assert recipe.training.temperature.start == 3


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
        (
            "steps: 1000",
            "steps: many",
            15,
            "`training.steps` must be an integer from 1",
        ),
        ("steps: 1000", "steps: 1.5", 15, "Received: 1.5"),
        ("steps: 1000", "steps: 1\n  7: 3", 16, "`training.7` is unknown"),
        ("steps: 1000", "steps: '5'", 15, "must be an integer"),
        ("steps: 1000", "steps: true", 15, "must be an integer"),
        (
            "steps: 1000",
            "steps: -3",
            15,
            "must be an integer from 1 to 2,147,483,647. Received: -3",
        ),
        (
            "steps: 1000",
            "steps: 1000\n  objective: {r_drop: {alpha: .inf}}",
            None,
            "alpha` must be a finite number of at least 0. Received: inf",
        ),
        (
            "warmup_steps:",
            "peak: .nan\n    warmup_steps:",
            17,
            "peak` must be a finite number above 0 or null. Received: nan",
        ),
        (
            "steps: 1000",
            "steps: null",
            15,
            "`training.steps` must be an integer from 1",
        ),
        (
            "steps: 1000",
            "steps: 1000\n  precision: x",
            16,
            "'float32' or 'mixed_bfloat16'",
        ),
        ("  steps: 1000\n", "", 14, "`training.steps` is missing"),
        (
            "weight: 2",
            "weight: 0",
            12,
            "`data.train.1.weight` must be a finite number above 0. Received",
        ),
        ("overrides: {dropout: 0.2}", "overrides: 3", 5, "model.overrides"),
        ("  overrides: {", "  overrides: {{", 6, "not YAML"),
        ("  train:\n    - ", "  train:\n    ", None, "not YAML"),
        (
            "    - source: train.en\n      target: train.de\n"
            "    - source: more.en\n      target: more.de\n      weight: 2\n",
            "    {source: train.en, target: train.de}\n",
            7,
            "`data.train` must be a list, in brackets or with `- ` before each "
            "entry, where each entry is a mapping of keys to values. Received: "
            "{'source': 'train.en',",
        ),
        (
            "seed: 5",
            "evaluation: {metrics: bleu}",
            1,
            "before each entry, where each entry is text. Received: 'bleu'",
        ),
        (
            "{source: valid.en, target: valid.de}",
            "valid.en",
            13,
            "`data.valid` must be a mapping of keys to values or a list, in "
            "brackets or with `- ` before each entry, where each entry is a "
            "mapping of keys to values or null. Received: 'valid.en'",
        ),
        ("seed: 5", "seeds: 5", 1, "`seeds` is unknown; did you"),
        ("seed: 5", "seed: 5\nseed: 6", 2, "`seed` is given twice, first in"),
        ("seed: 5", "seed: {a: 5}", 1, "`seed` must be an integer"),
        (
            "seed: 5",
            "decoding: {length_offset: -1}",
            1,
            "`decoding.length_offset` must be a finite number of at least 0. "
            "Received: -1. Take 5 for",
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


MISTAKES = """\
nam: toy
seed: 5
seed: 6
model: {presett: transformer_tiny}
data:
  train:
    - {source: train.en, target: train.de, wieght: 2}
    - {source: more.en}
  valid: {source: valid.en, target: valid.de, weight: 0}
  min_length: 0
training:
  batch_tokens: many
  label_smoothing: 2
  objective:
    r_drop: {alpha: -1}
    scheduled_sampling: {start_step: 9, end_step: 3}
  learning_rate: {schedule: noam, peak: 0.1, warmup_steps: 0}
decoding: 7
"""


def test_the_earlier_keys_of_terms_are_read(written):
    # The file of a finished run has a value for each key.
    unused = "\n  scheduled_sampling: null\n  distillation: null\n  r_drop: 0.0"
    file = written("steps: 1000", f"steps: 1000{unused}")
    assert load_recipe(file).training.objective == {}
    earlier = {
        "training.r_drop": 5.0,
        "training.scheduled_sampling.probability": 0.5,
        "training.distillation.run": "teacher",
    }
    present = {
        "training.objective.scheduled_sampling.probability": 0.5,
        "training.objective.distillation.teacher": "teacher",
        "training.objective.r_drop.alpha": 5.0,
    }
    recipe = load_recipe(written(), present)
    assert load_recipe(file, earlier) == recipe
    used = (
        "\n  r_drop: 5.0\n  scheduled_sampling: {probability: 0.5}\n"
        "  distillation: {run: teacher}"
    )
    assert load_recipe(written("steps: 1000", f"steps: 1000{used}")) == recipe


def test_the_earlier_key_of_the_precision_is_read(written):
    earlier = "steps: 1000\n  dtype_policy: mixed_bfloat16"
    file = written("steps: 1000", earlier)
    assert load_recipe(file).training.precision == "mixed_bfloat16"
    changed = load_recipe(file, {"training.dtype_policy": "float32"})
    assert changed.training.precision == "float32"
    both = f"{earlier}\n  precision: float32"
    with pytest.raises(UserError, match="training.dtype_policy"):
        load_recipe(written("steps: 1000", both))


def test_a_mistake_in_an_earlier_key_is_told_with_its_line(written):
    file = written("steps: 1000", "steps: 1000\n  distillation: {runn: x}")
    with pytest.raises(UserError) as info:
        load_recipe(file)
    told = str(info.value).splitlines()
    assert told == [
        f"{file}, line 16: `training.objective.distillation.runn` is unknown; "
        "possible here: teacher, weight.",
        f"{file}, line 16: `training.objective.distillation.teacher` is "
        "missing",
    ]


def test_an_earlier_key_has_no_third_spelling(written):
    file = written("steps: 1000", "steps: 1000\n  r_drop: {alpha: 5.0}")
    with pytest.raises(UserError, match="line 16: .*r_drop.alpha` must be a f"):
        load_recipe(file)


def test_a_term_with_both_keys_is_refused(written):
    both = "r_drop: 5.0\n  objective: {r_drop: {alpha: 1}}"
    with pytest.raises(UserError, match="line 16: `training.r_drop` is unkno"):
        load_recipe(written("steps: 1000", f"steps: 1000\n  {both}"))


def test_all_mistakes_are_told_at_once(tmp_path):
    file = tmp_path / "toy.yaml"
    file.write_text(MISTAKES, encoding="utf-8")
    with pytest.raises(UserError) as info:
        load_recipe(file, {"training.max_shapes": 0})
    told = str(info.value).splitlines()
    expected = [
        "line 1: `nam` is unknown; did you mean `name`?",
        "line 3: `seed` is given twice, first in line 2.",
        "line 4: `model.presett` is unknown; did you mean `model.preset`?",
        "line 7: `data.train.0.wieght` is unknown; did you mean",
        "line 8: `data.train.1.source`: A corpus must have `source` and",
        "line 9: `data.valid.weight` must be a finite number above 0.",
        "line 10: `data.min_length` must be an integer from 1 to",
        "line 11: `training.steps` is missing",
        "line 12: `training.batch_tokens` must be",
        "line 13: `training.label_smoothing` must be a finite number in [0, 1)",
        "line 15: `training.objective.r_drop.alpha` must be a finite number",
        "line 16: `training.objective.scheduled_sampling.probability` is",
        "line 16: `training.objective.scheduled_sampling.end_step`: `end_st",
        "line 17: `training.learning_rate.peak`: `peak` belongs to",
        "line 17: `training.learning_rate.warmup_steps` must be an int",
        "line 18: `decoding` must be a mapping of keys to values. Received: 7",
    ]
    for line, part in zip(told, expected, strict=False):
        assert line.startswith(f"{file}, {part}"), line
    assert told[len(expected) :] == [
        f"{file}: `training.max_shapes` must be an integer from 1 to 255 or "
        "null. Received: 0"
    ]


def test_what_follows_from_a_mistake_is_not_told(written):
    # Without its wrong name the optimizer would refuse `momentum`, and without
    # its mistyped name the key would be missing.
    file = written("{epsilon: 1e-9}", "{name: nestorov, momentum: 0.9}")
    with pytest.raises(UserError) as info:
        load_recipe(file)
    assert str(info.value).count("\n") == 0
    file = written("steps: 1000", "step: 1000")
    with pytest.raises(UserError) as info:
        load_recipe(file)
    assert str(info.value).count("\n") == 0


def test_a_recipe_without_a_name_has_that_of_its_file(written):
    assert load_recipe(written("name: transformer_tiny.toy\n")).name == "toy"


def test_a_missing_corpus_is_told_with_its_remedy(tmp_path):
    file = tmp_path / "toy.yaml"
    file.write_text("model: {preset: transformer_tiny}\ntraining: {steps: 3}")
    with pytest.raises(UserError, match="`data` is missing.*--prepared DIR"):
        load_recipe(file)


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
