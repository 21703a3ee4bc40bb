"""What must be true of the recipe's options for robust training.

* all six train together; an interrupted run ends bit-identical
* each key reaches the step or the batches, also those of a trial that looks
  for the size of a batch; without them training is plain
* a teacher that is not a finished run, has other tokenizers, or has changed
  since is refused in one line; a run goes on without its teacher
* a registered loss and a registered term are used by a recipe that names them;
  unknown names are refused with the nearest right one
"""

import dataclasses
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from broken_runs import checkpoint

from keras_deepnmt.data.batches.subword_sampling import SubwordSampling
from keras_deepnmt.data.context import mark_id
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import write_json
from keras_deepnmt.losses import LabelSmoothedCrossEntropy, register_loss
from keras_deepnmt.models import (
    Objective,
    ObjectiveTerm,
    Transformer,
    register_objective_term,
)
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.runs.batch_size import with_parts
from keras_deepnmt.runs.batch_trial import try_updates
from keras_deepnmt.runs.build import build_model, compile_model
from keras_deepnmt.runs.objective_options import (
    batch_transforms,
    compile_options,
    make_loss,
)
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import resolve_run
from keras_deepnmt.runs.train import train
from keras_deepnmt.training.checkpoints import CheckpointStore
from keras_deepnmt.translator import Translator
from keras_deepnmt.zoo.registry import PRESET_VERSION

OPTIONS = {
    "training.steps": 4,
    "training.validate_every": 2,
    "training.objective.r_drop.alpha": 2.0,
    "training.word_dropout": 0.2,
    "training.subword_sampling": 0.3,
    "training.objective.scheduled_sampling.probability": 0.5,
    "training.objective.scheduled_sampling.end_step": 3,
    "training.objective.distillation.weight": 0.4,
    "training.objective.guided_alignment.weight": 0.1,
}


@pytest.fixture(scope="module")
def teacher_dir(recipe_file, prepared_dir, tmp_path_factory):
    """A finished run, as far as a teacher needs one: untrained weights."""
    run = RunFolder(tmp_path_factory.mktemp("teacher") / "run")
    recipe, data = load_recipe(recipe_file), PreparedData(prepared_dir)
    run.directory.mkdir(parents=True)
    run.copy_tokenizers(data.directory)
    model = build_model(recipe, data.manifest)
    content = {
        "preset": recipe.model.preset,
        "preset_version": PRESET_VERSION,
        "overrides": recipe.model.overrides,
        "weights_sha256": run.write_model(model),
        "tokenizer": dict(data.manifest["tokenizer"]),
    }
    for side in ("source", "target"):
        name = f"{side}_vocabulary_size"
        content[name] = data.manifest[name]
    write_json(run.run_file, content)
    return run.directory


@pytest.fixture
def recipe(recipe_file, teacher_dir):
    run = {"training.objective.distillation.teacher": str(teacher_dir)}
    return load_recipe(recipe_file, OPTIONS | run)


@pytest.fixture
def train_in(recipe, prepared_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(
        Translator, "translate", lambda self, texts: list(texts)
    )

    def run(name):
        train(recipe, tmp_path / name, prepared_dir=prepared_dir, quiet=True)
        return checkpoint(tmp_path / name, 4)

    return run


def breaks_off_once(monkeypatch, step):
    save, errors = CheckpointStore.save, [RuntimeError("killed")]

    def failing(store, model, number, **options):
        if number == step and errors:
            raise errors.pop()
        return save(store, model, number, **options)

    monkeypatch.setattr(CheckpointStore, "save", failing)


def test_a_trial_of_a_batch_has_the_objective_of_the_run(
    recipe, prepared_dir, tmp_path, monkeypatch
):
    tried = []
    monkeypatch.setattr(
        Transformer,
        "fit",
        lambda model, *batches, **kwargs: tried.append(model),
    )
    auto = {
        "training.batch_tokens": "auto",
        "training.effective_batch_tokens": 90,
    }
    file = tmp_path / "recipe.yaml"
    save_recipe(recipe, file, {})
    save_recipe(with_parts(load_recipe(file, auto), 3), file, {})
    try_updates(file, prepared_dir)
    dropping, sampling, distillation, guided = tried[0].objective.terms
    assert dropping.alpha == 2.0
    assert sampling.probability == 0.5
    assert distillation.weight == 0.4
    assert guided.weight == 0.1
    assert tried[0].gradient_accumulation_steps == 3


@pytest.mark.thorough
def test_all_options_broken_off_end_as_if_they_had_not(
    train_in, recipe, prepared_dir, tmp_path, monkeypatch
):
    whole = train_in("whole")
    breaks_off_once(monkeypatch, 3)
    with pytest.raises(RuntimeError, match="killed"):
        train_in("resumed")
    refuses_another_teacher(recipe, prepared_dir, tmp_path)
    resumed = train_in("resumed")
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(value, resumed[name], err_msg=name)
    history = RunFolder(tmp_path / "whole").history()
    assert all(np.isfinite(row["loss"]) for _, row in history)
    # The teacher is in neither the checkpoint nor the final model.
    run = RunFolder(tmp_path / "whole").read_summary()
    assert (
        run["parameters"]
        == Translator.load(
            recipe.training.objective["distillation"].teacher
        ).model.count_params()
    )


def refuses_another_teacher(recipe, prepared_dir, tmp_path):
    file = tmp_path / "copy" / "recipe.yaml"
    shutil.copytree(tmp_path / "resumed", file.parent)
    teacher = RunFolder(
        recipe.training.objective["distillation"].teacher
    ).read_summary()
    text = file.read_text()
    assert teacher["weights_sha256"] in text
    file.write_text(text.replace(teacher["weights_sha256"], "0" * 64))
    with pytest.raises(UserError, match="its weights are not those"):
        train(recipe, file.parent, prepared_dir=prepared_dir, quiet=True)


def test_each_key_reaches_its_place(recipe, prepared_dir):
    data = PreparedData(prepared_dir)
    objective = Objective(
        tuple(compile_options(recipe, data)["objective_terms"])
    )
    dropping, sampling, distillation, guided = objective.terms
    assert dropping.alpha == 2.0
    assert sampling.get_config() == {
        "probability": 0.5,
        "start_step": 0,
        "end_step": 3,
    }
    assert distillation.weight == 0.4
    assert guided.weight == 0.1
    cutting, dropping = batch_transforms(recipe, data)
    assert isinstance(cutting, SubwordSampling)
    assert (cutting.alpha, cutting.seed) == (0.3, 7)
    assert (dropping.probability, dropping.seed) == (0.2, 7)


def test_alignments_are_those_of_the_sentence_after_its_context(
    recipe_file, tmp_path
):
    changes = {"data.context": 1, "data.vocabulary_size": 21}
    recipe = load_recipe(
        recipe_file, {**changes, "training.objective.guided_alignment": {}}
    )
    prepare_corpus(recipe.data, tmp_path / "data", progress=False)
    data = PreparedData(tmp_path / "data")
    (term,) = compile_options(recipe, data)["objective_terms"]
    mark = mark_id(data.source_tokenizer)
    assert mark is not None and term.alignments.mark == mark


def test_without_its_keys_a_recipe_is_plain(recipe_file, prepared_dir):
    recipe, data = load_recipe(recipe_file), PreparedData(prepared_dir)
    assert Objective(
        tuple(compile_options(recipe, data)["objective_terms"])
    ).is_plain
    assert batch_transforms(recipe, data) == []


def test_a_run_goes_on_without_its_teacher_and_with_it_again(
    recipe, recipe_file, prepared_dir, tmp_path
):
    folder, data = RunFolder(tmp_path / "run"), PreparedData(prepared_dir)
    folder.directory.mkdir()
    plain = load_recipe(recipe_file)
    for given, has_teacher in ((recipe, True), (plain, False), (recipe, True)):
        run = resolve_run(given, folder, data, say=lambda line: None)
        assert ("teacher_sha256" in run.recorded.resolved) == has_teacher
        folder.record(run.recorded)


def test_a_teacher_with_other_tokenizers_is_refused(recipe, prepared_dir):
    data = PreparedData(prepared_dir)
    other = SimpleNamespace(
        source_tokenizer=data.source_tokenizer,
        target_tokenizer=SimpleNamespace(sha256="0"),
        directory=data.directory,
    )
    with pytest.raises(UserError, match="another target tokenizer") as info:
        compile_options(recipe, other)
    assert "\n" not in str(info.value)


def test_a_teacher_that_is_not_finished_is_refused_at_once(recipe, tmp_path):
    distillation = dataclasses.replace(
        recipe.training.objective["distillation"],
        teacher=str(tmp_path / "nowhere"),
    )
    training = dataclasses.replace(
        recipe.training, objective={"distillation": distillation}
    )
    recipe = dataclasses.replace(recipe, training=training)
    with pytest.raises(UserError, match="distillation.teacher`: .*no s"):
        train(recipe, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "key, value, said",
    [
        (
            "objective.r_drop.alpha",
            -1.0,
            "r_drop.alpha` must be a finite number of at",
        ),
        ("word_dropout", 1.0, "`training.word_dropout` .*\\[0, 1\\)"),
        ("subword_sampling", 1.5, "`training.subword_sampling` .*\\[0, 1\\]"),
        (
            "objective.scheduled_sampling.end_step",
            -3,
            "end_step` must be an integer from 0",
        ),
        ("objective.distillation.weight", 2.0, "distillation.weight`"),
    ],
)
def test_values_that_cannot_be_are_refused(recipe_file, key, value, said):
    changes = {**OPTIONS, "training.objective.distillation.teacher": "teacher"}
    with pytest.raises(UserError, match=said):
        load_recipe(recipe_file, {**changes, f"training.{key}": value})


class Tripled(LabelSmoothedCrossEntropy):
    def __init__(self, factor=3.0):
        super().__init__(0.0)
        self.factor = factor

    def call(self, labels, log_probs):
        return self.factor * super().call(labels, log_probs)


class Shrunk(ObjectiveTerm):
    def __init__(self, factor):
        self.factor = factor

    def change_losses(self, model, labels, log_probs, losses, prepared):
        return self.factor * losses


NAMED = {
    "training.steps": 2,
    "training.validate_every": 1,
    "training.loss": "tripled_in_test",
    "training.loss_options": {"factor": 4.0},
    "training.objective": {"shrunk_in_test": {"factor": 0.25}},
}


@pytest.fixture
def registered():
    register_loss("tripled_in_test", Tripled)
    register_objective_term("shrunk_in_test", Shrunk)


@pytest.mark.thorough
def test_a_recipe_trains_with_a_registered_loss_and_term(
    recipe_file, prepared_dir, tmp_path, registered, without_search
):
    plain = {**NAMED, "training.loss_options": {"factor": 1.0}}
    del plain["training.objective"]
    found = {}
    for name, changes in (("named", NAMED), ("plain", plain)):
        recipe = load_recipe(recipe_file, changes)
        train(recipe, tmp_path / name, prepared_dir=prepared_dir, quiet=True)
        assert RunFolder(tmp_path / name).recipe() == recipe
        found[name] = checkpoint(tmp_path / name, 2)
    # Four times the loss, of which a quarter is taken.
    for name, value in found["named"].items():
        np.testing.assert_array_equal(value, found["plain"][name], name)


def test_a_recipe_compiles_a_registered_loss_and_term(
    recipe_file, prepared_dir, registered
):
    recipe, data = load_recipe(recipe_file, NAMED), PreparedData(prepared_dir)
    model = build_model(recipe, data.manifest)
    compile_model(recipe, model, **compile_options(recipe, data))
    assert model.token_loss.factor == 4.0
    (term,) = model.objective.terms
    assert term.factor == 0.25


def test_a_recipe_without_a_loss_means_label_smoothing(recipe_file):
    recipe = load_recipe(recipe_file)
    assert recipe.training.label_smoothing == 0.1
    loss = make_loss(recipe)
    assert type(loss) is LabelSmoothedCrossEntropy
    assert loss.label_smoothing == 0.1
    plain = load_recipe(recipe_file, {"training.loss": "cross_entropy"})
    assert make_loss(plain).label_smoothing == 0.0


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"loss": "cross_entopy"}, '`training.loss`: .*"cross_entropy"?'),
        ({"loss": "focal"}, "`training.loss`: .*Registered: .*smoothed"),
        # The name is wrong, not the option that goes with it.
        (
            {"loss": "cross_entopy", "label_smoothing": 0.1},
            '`training.loss`: .*"cross_entropy"?',
        ),
        ({"loss_options": {"gamma": 2}}, "`training.loss`: .*gamma"),
        (
            {"loss_options": {"label_smoothing": 0.2}},
            "`training.loss`: .*multiple values",
        ),
        (
            {"loss": "cross_entropy", "label_smoothing": 0.1},
            "`training.label_smoothing`: .*belongs to `loss: label_smoothed",
        ),
        (
            {"objective": {"shrunk_in_tst": {}}},
            '`training.objective.shrunk_in_tst`: .*"shrunk_in_test"?',
        ),
        (
            {"objective": {"shrunk_in_test": {"rate": 1}}},
            "`training.objective.shrunk_in_test`: .*rate",
        ),
        (
            {"objective": {"shrunk_in_test": 0.25}},
            "`training.objective.shrunk_in_test`: .*must be a mapping",
        ),
    ],
)
def test_wrong_losses_and_terms_are_refused_at_once(
    recipe_file, tmp_path, registered, changes, said
):
    changes = {f"training.{key}": value for key, value in changes.items()}
    with pytest.raises(UserError, match=said) as info:
        train(load_recipe(recipe_file, changes), tmp_path / "run", quiet=True)
    assert "\n" not in str(info.value)
    assert not (tmp_path / "run").exists()
