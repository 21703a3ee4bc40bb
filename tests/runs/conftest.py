"""A corpus of a few letters, prepared once, and a recipe of six updates."""

import contextlib
import random

import pytest
from broken_runs import translate_by_weights
from uncompiled_models import eager_updates

from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.evaluation.bleu_callback import BleuCallback
from keras_deepnmt.models.training_step.training_state import update_count
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.preset_folder import save_run_to_preset
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

RECIPE = """\
name: transformer_tiny.letters
seed: 7
model:
  preset: transformer_tiny
  overrides:
    hidden_dim: 8
    intermediate_dim: 8
    num_heads: 2
    num_encoder_layers: 1
    num_decoder_layers: 1
    dropout: 0.3
data:
  train: [{{source: {folder}/train.source, target: {folder}/train.target}}]
  valid: {{source: {folder}/valid.source, target: {folder}/valid.target}}
  test: {{source: {folder}/test.source, target: {folder}/test.target}}
  vocabulary_size: 20
  drop_identical: false
training:
  steps: 6
  batch_tokens: 64
  max_shapes: 2
  learning_rate: {{peak: 0.01, warmup_steps: 3}}
  jit_compile: false
  validate_every: 3
  checkpoint_every: 1
  average_checkpoints: 2
decoding:
  num_beams: 2
  batch_size: 7
evaluation:
  tokenize: none
"""


@pytest.fixture(scope="module", autouse=True)
def cheap_updates():
    """Each run is compared with others of the same process.

    Graphs are in test_killed_runs.py and in other tests of processes.
    """
    with eager_updates():
        yield


def write_corpus(folder):
    draw = random.Random(5)
    for split, pairs in (("train", 131), ("valid", 5), ("test", 7)):
        with (
            open(folder / f"{split}.source", "w") as source,
            open(folder / f"{split}.target", "w") as target,
        ):
            for _ in range(pairs):
                words = draw.choices("abcdefgh", k=draw.randint(2, 9))
                source.write(" ".join(words) + "\n")
                target.write(" ".join(reversed(words)) + "\n")


@pytest.fixture(scope="session")
def recipe_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    write_corpus(folder)
    file = folder / "letters.yaml"
    file.write_text(RECIPE.format(folder=folder), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def prepared_dir(recipe_file):
    folder = recipe_file.parent / "prepared"
    prepare_corpus(load_recipe(recipe_file).data, folder, progress=False)
    return folder


@pytest.fixture(scope="session")
def finished_run(recipe_file, prepared_dir, tmp_path_factory):
    """A run of six updates that nothing disturbed; tests change copies."""
    run_dir = tmp_path_factory.mktemp("runs") / "finished"
    with eager_updates(), pytest.MonkeyPatch.context() as patch:
        # As all runs that are compared with it.
        patch.setattr(Translator, "translate", translate_by_weights)
        train(recipe_file, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


@pytest.fixture(scope="session")
def preset_dir(finished_run, tmp_path_factory):
    """The preset folder of that run; tests only read it."""
    folder = tmp_path_factory.mktemp("source") / "preset"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", lambda self, texts: list(texts))
        return save_run_to_preset(finished_run, folder)


@pytest.fixture
def train_in(recipe_file, prepared_dir, tmp_path):
    """Trains in a folder of this test, with changes to the recipe."""

    def run(changes=None, **options):
        recipe = load_recipe(recipe_file, changes)
        options = {"prepared_dir": prepared_dir, "quiet": True} | options
        return train(recipe, tmp_path / "run", **options)

    return run


@pytest.fixture
def without_search(monkeypatch):
    """Spares the tracing of a search whose result does not matter."""
    monkeypatch.setattr(Translator, "translate", translate_by_weights)


@pytest.fixture(scope="session")
def given_scores():
    """A context in which each validation has the BLEU that is given for it."""

    @contextlib.contextmanager
    def give(scores):
        """`scores` maps the updates of the validations to BLEU."""

        def score(bleu, epoch, logs):
            logs["val_bleu"] = scores[update_count(bleu.model)]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BleuCallback, "on_epoch_end", score)
            patch.setattr(
                Translator, "translate", lambda self, texts: list(texts)
            )
            yield

    return give
