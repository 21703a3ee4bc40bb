"""What must be true of a run with tags on the target side.

* its validation, its record and its translations know the side
* translations that a term draws would lack the tags: it is refused
* word dropout leaves tags, without which nobody knows the language, and so does
  scheduled sampling
"""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from foreign_tokenizer import imported_tokenizer

from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.recipes.objective_schema import ScheduledSamplingRecipe
from keras_deepnmt.runs.objective_options import (
    batch_transforms,
    check_objective,
    compile_options,
)
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

CHANGES = {
    "data.tag_side": "target",
    "data.vocabulary_size": 22,
    "training.steps": 2,
    "training.validate_every": 2,
    "evaluation.metrics": ["bleu"],
}


@pytest.fixture
def recipe(recipe_file):
    recipe = load_recipe(recipe_file, CHANGES)
    (corpus,) = recipe.data.train
    named = [
        dataclasses.replace(corpus, tag=tag, target_language=tag[2:4])
        for tag in ("<2de>", "<2fr>")
    ]
    valid = dataclasses.replace(recipe.data.valid, tag="<2fr>")
    data = dataclasses.replace(
        recipe.data, source_language="en", train=named, valid=valid, test=None
    )
    return dataclasses.replace(recipe, data=data)


def test_a_run_knows_the_side_of_its_tags(recipe, tmp_path, monkeypatch):
    seen = []

    def translate(translator, texts, **_):
        seen.append((translator.tag_side, translator.target_tags(texts)))
        return [text.removeprefix("<2fr> ") for text in texts]

    monkeypatch.setattr(Translator, "translate", translate)
    train(recipe, tmp_path / "run", quiet=True)
    # In training, and at its end.
    assert len(seen) >= 2
    assert all(one == ("target", ["<2fr>"] * 5) for one in seen)
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    assert summary["tag_side"] == "target"
    loaded = Translator.load(tmp_path / "run", target_language="fr")
    assert loaded.tag_side == "target"
    assert loaded.training_tags == ("<2de>", "<2fr>")
    assert loaded.target_tags(["a b", "<2de> a"]) == ["<2fr>"] * 2
    monkeypatch.undo()
    (best,) = loaded.replaced(compiled=False).translate_nbest("a b", 1)
    assert loaded.target_tokenizer.pieces(best.ids)[:2] == ["▁", "<2fr>"]
    # An untrained model may write it again, further on.
    (whole,) = loaded.target_tokenizer.decode([best.ids])
    assert whole.removeprefix("<2fr>").strip() == best.text.strip()


def test_drawn_translations_are_refused(recipe, recipe_file):
    drawn = load_recipe(
        recipe_file, {"training.objective.minimum_risk.num_samples": 2}
    )
    check_objective(drawn)
    refused = dataclasses.replace(drawn, data=recipe.data)
    with pytest.raises(UserError, match="would not begin with the tags"):
        check_objective(refused)


@pytest.mark.parametrize("side", ["source", "target"])
def test_word_dropout_leaves_tags(recipe, tmp_path, side):
    corpora = dataclasses.replace(recipe.data, tag_side=side)
    training = dataclasses.replace(recipe.training, word_dropout=0.999)
    recipe = dataclasses.replace(recipe, data=corpora, training=training)
    prepare_corpus(recipe.data, tmp_path / "data", progress=False)
    data = PreparedData(tmp_path / "data")
    tokenizer = getattr(data, f"{side}_tokenizer")
    (ids,) = tokenizer.encode(["<2de> a b <2fr>"])
    (transform,) = batch_transforms(recipe, data)
    found = transform.change_inputs(
        {f"{side}_ids": np.tile(ids, (100, 1))}, step=1
    )
    tags = tokenizer.ids_of_pieces(["<2de>", "<2fr>"])
    expected = np.where(np.isin(ids, tags), ids, 1)
    is_expected = found[f"{side}_ids"] == expected
    assert is_expected[:, np.isin(ids, tags)].all()
    assert is_expected.mean() > 0.95


def test_tags_of_imported_models_are_left(recipe, prepared_dir, tmp_path):
    """Their pieces begin with the mark of a word."""
    plain = PreparedData(prepared_dir).target_tokenizer
    tags = [">>deu<<", ">>fra<<"]
    tokenizer = imported_tokenizer(plain, tmp_path / "model", tags, "<bos>")
    data = SimpleNamespace(
        source_tokenizer=tokenizer, target_tokenizer=tokenizer, links=None
    )
    corpora = [
        dataclasses.replace(corpus, tag=tag)
        for corpus, tag in zip(recipe.data.train, tags, strict=True)
    ]
    recipe = dataclasses.replace(
        recipe,
        data=dataclasses.replace(recipe.data, train=corpora, valid=None),
        training=dataclasses.replace(
            recipe.training,
            word_dropout=0.999999,
            objective={"scheduled_sampling": ScheduledSamplingRecipe(1.0)},
        ),
    )
    begin, tag, *words = tokenizer.encode([">>deu<< a b"])[0].tolist()
    (transform,) = batch_transforms(recipe, data)
    found = transform.change_inputs(
        {"source_ids": np.array([[begin, tag, *words]])}, step=1
    )
    assert found["source_ids"].tolist() == [[begin, tag] + [1] * len(words)]
    (term,) = compile_options(recipe, data)["objective_terms"]
    assert term.kept == [tag, tag + 1]


@pytest.mark.parametrize("side", ["source", "target"])
def test_scheduled_sampling_leaves_the_tags_of_targets(recipe, tmp_path, side):
    sampling = {"scheduled_sampling": ScheduledSamplingRecipe(1.0)}
    recipe = dataclasses.replace(
        recipe,
        data=dataclasses.replace(recipe.data, tag_side=side),
        training=dataclasses.replace(recipe.training, objective=sampling),
    )
    prepare_corpus(recipe.data, tmp_path / "data", progress=False)
    data = PreparedData(tmp_path / "data")
    (term,) = compile_options(recipe, data)["objective_terms"]
    expected = []
    if side == "target":
        expected = data.target_tokenizer.ids_of_pieces(["<2de>", "<2fr>"])
        assert 1 not in expected
    assert term.kept == expected
