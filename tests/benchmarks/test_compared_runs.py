"""What `compared_runs.py` says of the training of a model."""

import pytest

from benchmarks.quality.compared_runs import _training_text, _updates
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.recipes.loading import save_recipe

COLUMNS = {"source_column": "source", "target_column": "target"}


TRANSLATED = {"translated_by": "runs/teacher"}


@pytest.mark.parametrize(
    ("corpora", "text"),
    [
        ([{}, {}], "the corpus"),
        ([TRANSLATED], "a teacher's translations"),
        ([{}, TRANSLATED], "the corpus and a teacher's translations"),
        # So do prepared data name the translations of a teacher.
        ([{"file": "runs/a.jsonl", **COLUMNS}], "a teacher's translations"),
    ],
)
def test_a_teachers_translations_are_told_from_the_corpus(corpora, text):
    train = [{"name": "multi30k_tok_en_de", **corpus} for corpus in corpora]
    recipe = load_recipe(
        "transformer_tiny.multi30k_en_de", {"data.train": train}
    )
    assert _training_text(recipe) == text


def test_updates_are_those_since_the_weights_were_random(tmp_path):
    words = ["transformer_tiny.multi30k_en_de", {"training.steps": 500}]
    first = load_recipe(*words)
    save_recipe(first, tmp_path / "recipe.yaml", {})
    words[1] = words[1] | {"training.initialize_from": str(tmp_path)}
    assert (_updates(first), _updates(load_recipe(*words))) == (500, 1000)
