"""What must be true of a run that follows given word alignments.

* its updates follow them, not the learned ones, and a run that was broken off
  goes on with the same
* what would not use them, or change the tokens that they link, is refused
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from broken_runs import checkpoint, fails_at

from keras_deepnmt.data import prepare_corpus
from keras_deepnmt.data.batches.alignment_inputs import AlignmentInputs
from keras_deepnmt.data.terms import TERM_MARKS
from keras_deepnmt.errors import UserError
from keras_deepnmt.models import Transformer
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.recipes.stage_schema import ModifiersRecipe, StageRecipe
from keras_deepnmt.runs.batch_trial import try_updates
from keras_deepnmt.runs.dry_run import dry_run
from keras_deepnmt.runs.objective_options import check_objective
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

CHANGES = {
    "training.steps": 4,
    "training.validate_every": 2,
    "training.objective.guided_alignment.weight": 1.0,
}


@pytest.fixture(scope="module")
def aligned(recipe_file, tmp_path_factory):
    """The recipe of the letters, whose targets are the sources reversed."""
    recipe = load_recipe(recipe_file, CHANGES)
    (corpus,) = recipe.data.train
    file = tmp_path_factory.mktemp("letters") / "train.align"
    with open(corpus.source) as sources, open(file, "w") as output:
        for line in sources:
            size = len(line.split())
            links = (f"{n}-{size - 1 - n}" for n in range(size))
            output.write(" ".join(links) + "\n")
    corpus = dataclasses.replace(corpus, alignments=str(file))
    data = dataclasses.replace(recipe.data, train=[corpus])
    return dataclasses.replace(recipe, data=data)


@pytest.fixture(scope="module")
def aligned_dir(aligned):
    folder = Path(aligned.data.train[0].alignments).parent / "prepared"
    prepare_corpus(aligned.data, folder, progress=False)
    return folder


def with_training(recipe, **changes):
    training = dataclasses.replace(recipe.training, **changes)
    return dataclasses.replace(recipe, training=training)


@pytest.mark.thorough
def test_a_run_that_was_broken_off_goes_on_with_the_same_links(
    aligned, aligned_dir, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        Translator, "translate", lambda self, texts: list(texts)
    )
    seen = {}
    add = AlignmentInputs.change_inputs

    def noted(transform, inputs, step):
        changed = add(transform, inputs, step)
        seen.setdefault(step, []).append(changed["alignments"])
        return changed

    monkeypatch.setattr(AlignmentInputs, "change_inputs", noted)

    def run(name):
        train(aligned, tmp_path / name, prepared_dir=aligned_dir, quiet=True)
        return checkpoint(tmp_path / name, 4)

    whole = run("whole")
    fails_at(monkeypatch, 3, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        run("resumed")
    resumed = run("resumed")
    for name, value in whole.items():
        np.testing.assert_array_equal(value, resumed[name], err_msg=name)
    for step, batches in seen.items():
        assert batches[0].any(), step
        for other in batches[1:]:
            np.testing.assert_array_equal(batches[0], other)


def test_a_trial_of_a_batch_has_alignments(
    aligned, aligned_dir, tmp_path, monkeypatch
):
    tried = []
    monkeypatch.setattr(
        Transformer,
        "fit",
        lambda model, batches, **_: tried.append((model, next(batches))),
    )
    save_recipe(aligned, tmp_path / "recipe.yaml", {})
    try_updates(tmp_path / "recipe.yaml", aligned_dir)
    for model, (inputs, labels) in tried:
        assert model.objective.terms[0].alignments is None
        size = *labels.shape, inputs["source_ids"].shape[1]
        assert inputs["alignments"].shape == size


@pytest.mark.thorough
def test_a_run_with_marked_terms_goes_on_with_the_same(
    aligned, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        Translator, "translate", lambda self, texts: list(texts)
    )
    data = dataclasses.replace(
        aligned.data,
        user_defined_symbols=list(TERM_MARKS),
        vocabulary_size=aligned.data.vocabulary_size + len(TERM_MARKS),
    )
    prepare_corpus(data, tmp_path / "prepared", progress=False)
    stage = StageRecipe(modifiers=ModifiersRecipe(terms=0.5))
    recipe = with_training(
        dataclasses.replace(aligned, data=data), objective={}, stages=[stage]
    )

    def run(name):
        prepared = tmp_path / "prepared"
        train(recipe, tmp_path / name, prepared_dir=prepared, quiet=True)
        return checkpoint(tmp_path / name, 4)

    whole = run("whole")
    fails_at(monkeypatch, 3, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        run("resumed")
    for name, value in run("resumed").items():
        np.testing.assert_array_equal(whole[name], value, err_msg=name)


@pytest.mark.thorough
def test_a_dry_run_measures_updates_with_alignments(
    aligned, aligned_dir, tmp_path
):
    found = dry_run(aligned, tmp_path / "run", prepared_dir=aligned_dir)
    assert found.measured


def test_alignments_that_no_term_would_read_are_refused(aligned):
    check_objective(aligned)
    file = aligned.data.train[0].alignments
    with pytest.raises(UserError, match="only `training.objective.guided_al"):
        check_objective(with_training(aligned, objective={}))
    marked = {"stages": [StageRecipe(modifiers=ModifiersRecipe(terms=0.1))]}
    check_objective(with_training(aligned, objective={}, **marked))
    with pytest.raises(UserError, match="stages` with `modifiers`, which"):
        check_objective(with_training(aligned, **marked))
    refused = with_training(aligned, subword_sampling=0.1)
    with pytest.raises(UserError, match="subword_sampling`, which") as raised:
        check_objective(refused)
    assert file in str(raised.value)
