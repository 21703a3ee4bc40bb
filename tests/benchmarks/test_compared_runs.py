"""What `compared_runs.py` says of the text that a model has learned."""

import pytest

from benchmarks.quality.compared_runs import _training_text
from keras_deepnmt.recipes import load_recipe

COLUMNS = {"source_column": "source", "target_column": "target"}


@pytest.mark.parametrize(
    ("corpus", "text"),
    [
        ({}, "the corpus"),
        ({"translated_by": "runs/teacher"}, "a teacher's translations"),
        # So do prepared data name the translations of a teacher.
        ({"file": "runs/a.jsonl", **COLUMNS}, "a teacher's translations"),
    ],
)
def test_a_teachers_translations_are_told_from_the_corpus(corpus, text):
    name = "multi30k_tok_en_de"
    train = [{"name": name}, {"name": name, **corpus}]
    recipe = load_recipe(
        "transformer_tiny.multi30k_en_de", {"data.train": train}
    )
    assert _training_text(recipe) == text
