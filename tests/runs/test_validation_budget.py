"""What must be true of `training.validation_budget` in a run.

* the same part of the validation set is scored at all validations, also when
  the run is resumed; the final score is of the whole set
* a validation before any update of this process chooses none
* the number of sentences and the interval are in the log
* without a budget all sentences are scored
"""

import json

import pytest

from keras_deepnmt.evaluation import sentence_budget
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator


@pytest.fixture
def translated(monkeypatch):
    """The sentences of each call of `translate`, which gives them back."""
    calls = []

    def translate(self, texts):
        calls.append(list(texts))
        return list(texts)

    monkeypatch.setattr(Translator, "translate", translate)
    monkeypatch.setattr(sentence_budget, "FEWEST_SENTENCES", 3)
    monkeypatch.setattr(sentence_budget, "PILOT_SENTENCES", 2)
    return calls


@pytest.mark.thorough
def test_a_run_scores_the_same_part_at_all_validations(
    recipe_file, prepared_dir, tmp_path, translated
):
    def start(steps):
        changes = {
            "training.steps": steps,
            "training.validation_budget": 1e-9,
        }
        recipe = load_recipe(recipe_file, changes)
        train(recipe, tmp_path, prepared_dir=prepared_dir, quiet=True)

    start(3)
    # Twice the pilot, the part, and the whole set at the end.
    assert [len(texts) for texts in translated] == [2, 2, 3, 5]
    kept = json.loads(RunFolder(tmp_path).validation_file.read_text())
    assert kept["sentences"] == 3 and kept["of_sentences"] == 5
    assert kept["seconds_per_update"] > 0 and kept["seed"] == 7
    start(6)
    assert [len(texts) for texts in translated[4:]] == [3, 5]
    assert translated[4] == translated[2]
    for _, logs in RunFolder(tmp_path).history():
        assert logs["val_bleu_sentences"] == 3
        assert logs["val_bleu_interval"] >= 0


@pytest.mark.thorough
def test_an_interrupted_validation_leaves_the_choice_to_the_next_one(
    recipe_file, prepared_dir, tmp_path, translated, monkeypatch
):
    def start(budget):
        changes = {"training.validation_budget": budget}
        recipe = load_recipe(recipe_file, changes)
        train(recipe, tmp_path, prepared_dir=prepared_dir, quiet=True)

    def interrupted(self, texts):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            start(1e-8)
    # The sentences are chosen anew, but no update is timed yet.
    start(1e-9)
    assert [len(texts) for texts in translated] == [5, 2, 2, 3, 5]


@pytest.mark.thorough
def test_without_a_budget_all_sentences_are_scored(
    recipe_file, prepared_dir, tmp_path, translated
):
    changes = {"training.steps": 1, "training.validation_budget": None}
    recipe = load_recipe(recipe_file, changes | {"training.validate_every": 1})
    train(recipe, tmp_path, prepared_dir=prepared_dir, quiet=True)
    assert [len(texts) for texts in translated] == [5, 5]
    assert not RunFolder(tmp_path).validation_file.exists()


@pytest.mark.parametrize("wrong", [0, 1, -0.1])
def test_a_share_that_is_none_is_refused(recipe_file, wrong):
    with pytest.raises(ValueError, match="`training.validation_budget`"):
        load_recipe(recipe_file, {"training.validation_budget": wrong})
