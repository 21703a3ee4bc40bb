"""What must be true of runs that are grouped by recipe.

* runs that differ in seed, name or places of files are ones of one recipe
* any other key, other data or other initial weights make another recipe
* groups of one name are told apart by the keys that differ
* means and differences over seeds are those of the scores, paired by seed
"""

import dataclasses

import pytest

from keras_deepnmt.evaluation import Score, seed_statistics
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs.comparisons import (
    has_seeds,
    pairs_to_test,
    seed_differences,
    seed_scores,
)
from keras_deepnmt.runs.seed_groups import SeedGroup, group_by_recipe
from keras_deepnmt.runs.test_translations import TestTranslations

RECIPE = "transformer_tiny.demo_de_en"
CORPUS = {
    "split": "train",
    "name": "train",
    "source": "train.de",
    "target": "train.en",
    "sha256": {"source": "12", "target": "34"},
    "pairs": 9,
    "rows": [0, 9],
    "weight": 1.0,
    "tag": None,
}
RESOLVED = {
    "prepared": "/data/prepared",
    "manifest_sha256": "ab",
    "tokenizer": {"source": "56", "target": "78"},
    "corpora": [CORPUS],
    "preset_version": 2,
    "versions": {"keras": "3"},
    "commit": "c0",
}


@pytest.fixture
def add_run(tmp_path):
    """Writes the recipe of a run with changes; gives the run's folder."""

    def add(name, overrides=None, **resolved):
        (tmp_path / name).mkdir()
        recipe = load_recipe(RECIPE, overrides)
        file = tmp_path / name / "recipe.yaml"
        save_recipe(recipe, file, RESOLVED | resolved)
        return str(tmp_path / name)

    return add


def test_seeds_names_and_places_do_not_make_another_recipe(add_run):
    elsewhere = CORPUS | {"name": "mine", "source": "a", "target": "b"}
    files = {"source": "a", "target": "b"}
    changes = {"data.train": [files], "data.valid": files, "data.test": files}
    runs = [
        add_run("first", {"seed": 1}),
        add_run("second", {"seed": 2, "name": "again"}),
        add_run(
            "third",
            {"seed": 3, **changes},
            prepared="/elsewhere",
            manifest_sha256="cd",
            corpora=[elsewhere],
            versions={"keras": "4"},
            commit="c1",
        ),
    ]
    (group,) = group_by_recipe(runs)
    assert group.name == RECIPE
    assert group.runs == dict(zip((1, 2, 3), runs, strict=True))
    assert group.repeated == []


@pytest.mark.parametrize(
    ("overrides", "resolved", "told"),
    [
        ({"training.steps": 7}, {}, "steps=7"),
        ({"model.overrides.dropout": 0.5}, {}, "dropout=0.5"),
        ({"decoding.num_beams": 1}, {}, "num_beams=1"),
        (
            {},
            {"corpora": [CORPUS | {"sha256": {"source": "9", "target": "9"}}]},
            "other corpora",
        ),
        ({}, {"corpora": [CORPUS | {"rows": [0, 5]}]}, "other corpora"),
        ({}, {"tokenizer": {"source": "0", "target": "0"}}, "other tokenizer"),
        (
            {},
            {"initialize_from": {"run": "a", "weights_sha256": "ef"}},
            "other initialize_from",
        ),
    ],
)
def test_all_else_makes_another_recipe(add_run, overrides, resolved, told):
    runs = [add_run("first"), add_run("other", overrides, **resolved)]
    runs.append(add_run("second", {"seed": 5}))
    one, other = group_by_recipe(runs)
    assert list(one.seeds) == [runs[0], runs[2]]
    assert list(other.seeds) == [runs[1]]
    assert other.name == f"{RECIPE} ({told})"
    assert one.name.startswith(RECIPE) and one.name != other.name


def test_the_same_initial_weights_in_another_place_are_the_same(add_run):
    started = {"run": "a", "weights": "/a/model", "weights_sha256": "ef"}
    runs = [
        add_run("first", initialize_from=started),
        add_run(
            "second", {"seed": 1}, initialize_from=started | {"weights": "/b"}
        ),
    ]
    (group,) = group_by_recipe(runs)
    assert list(group.seeds) == runs


def test_copies_of_the_same_code_are_the_same(add_run, tmp_path):
    """A run folder's recipe imports its own copy, by an absolute path."""
    runs = []
    for seed, (name, sha256) in enumerate(
        [("first", "ab"), ("second", "ab"), ("other", "cd")]
    ):
        file = tmp_path / name / "code" / sha256 / "mine.py"
        record = {
            "file": f"code/{sha256}/mine.py",
            "sha256": sha256,
            "origin": f"/{name}/mine.py",
        }
        changes = {"seed": seed, "import": [str(file)]}
        runs.append(add_run(name, changes, code=[record]))
    one, other = group_by_recipe(runs)
    assert list(one.seeds) == runs[:2]
    assert list(other.seeds) == runs[2:]
    assert other.name == f"{RECIPE} (other code)"


def test_a_run_without_hashes_is_alone(add_run, tmp_path):
    runs = [add_run("first"), add_run("second", {"seed": 1})]
    for run in runs:
        recipe = load_recipe(f"{run}/recipe.yaml")
        save_recipe(recipe, tmp_path / run / "recipe.yaml", {})
    assert len(group_by_recipe(runs)) == 2


def test_a_seed_counts_once(add_run):
    runs = [add_run("first"), add_run("again"), add_run("other", {"seed": 1})]
    (group,) = group_by_recipe(runs)
    assert group.runs == {0: runs[0], 1: runs[2]}
    assert group.repeated == [runs[1]]
    # It has the seed of the first, so that its test is not one of seeds.
    assert pairs_to_test(runs, [group]) == [(runs[1], runs[0])]


def scored(recipes, **bleu):
    """Translations of which only the scores count."""
    scores = {name: {"bleu": Score(v, "", None)} for name, v in bleu.items()}
    empty = TestTranslations(None, [], {}, scores, {})
    return dataclasses.replace(empty, recipes=recipes)


PLAIN = SeedGroup("plain", {"p1": 1, "p2": 2, "p3": 3})
HYBRID = SeedGroup("hybrid", {"h2": 2, "h3": 3, "h4": 4})


def test_recipes_are_described_over_their_seeds_and_paired_by_seed():
    bleu = dict(p1=30.0, p2=31.0, p3=33.0, h2=32.5, h3=34.0, h4=40.0)
    text = scored([PLAIN, HYBRID], **bleu)
    plain, hybrid = seed_scores(text)
    assert (plain.recipe, plain.metric, plain.seeds) == (
        *("plain", "bleu", (1, 2, 3)),
    )
    assert plain.statistics == seed_statistics([30.0, 31.0, 33.0])
    assert hybrid.statistics == seed_statistics([32.5, 34.0, 40.0])
    (paired,) = seed_differences(text)
    assert (paired.recipe, paired.baseline) == ("hybrid", "plain")
    assert paired.seeds == (2, 3)
    assert paired.statistics == seed_statistics([1.5, 1.0])
    # The test of a run is one against the run of the same seed.
    runs = [*PLAIN.seeds, *HYBRID.seeds]
    assert pairs_to_test(runs, text.recipes) == [
        *(("h2", "p2"), ("h3", "p3"), ("h4", "p1")),
    ]
    assert has_seeds(text.recipes)


def test_recipes_without_a_common_seed_have_no_paired_difference():
    other = SeedGroup("other", {"o9": 9})
    (paired,) = seed_differences(scored([PLAIN, other], p1=1, p2=2, p3=3, o9=4))
    assert paired.seeds == () and paired.statistics is None
    assert not has_seeds([other])


def test_seeds_of_one_recipe_are_not_tested_against_each_other():
    assert pairs_to_test(list(PLAIN.seeds), [PLAIN]) == []
    # Nothing is known about translations in files.
    assert pairs_to_test(["a", "b", "c"], []) == [("b", "a"), ("c", "a")]
