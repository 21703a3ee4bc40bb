"""A run keeps its own code while the models of other runs are loaded.

Two runs have a file of one name with the same classes. Which version runs does
not depend on what is loaded in between: a teacher, the run whose weights it
starts from, or a teacher that translates training text.
"""

import sys
from dataclasses import replace

import keras
import pytest
from own_code_process import new_process

from keras_deepnmt.errors import UserError
from keras_deepnmt.losses import get_loss
from keras_deepnmt.own_code.loading import (
    allow_code,
    code_of_another_model,
    own_errors,
    use_code,
)
from keras_deepnmt.own_code.lookup import find_own
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.runs.run_code import settle_code
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import open_data
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Hypothesis, Translator
from keras_deepnmt.zoo.registry import get_preset

FILE = """\
import pathlib

import keras

from keras_deepnmt.losses import LabelSmoothedCrossEntropy, register_loss
from keras_deepnmt.zoo.registry import register_model


def note(what):
    with open("noted", "a") as file:
        file.write(f"{what} VERSION\\n")


@keras.saving.register_keras_serializable("mine")
class Focal(LabelSmoothedCrossEntropy):
    def call(self, labels, log_probs):
        note("loss")
        return super().call(labels, log_probs)


class Noting(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        note("callback")


def keep(source, target):
    note("filter")
    return True


def fail():
    raise ValueError("VERSION")


@register_model
def mine_tiny(source_vocabulary_size, target_vocabulary_size):
    fail()


register_loss("focal", Focal)
"""


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """A folder with both versions of the file."""
    folder = tmp_path_factory.mktemp("versions")
    for version in ("1", "2"):
        (folder / version).mkdir()
        text = FILE.replace("VERSION", version)
        (folder / version / "mine.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def made(versions, recipe_file, prepared_dir):
    """That folder with a run of the first version."""
    with (
        new_process(versions / "home", versions),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(Translator, "translate", lambda self, texts: list(texts))
        recipe = load_recipe(recipe_file, changes("1"))
        train(recipe, "other", prepared_dir=prepared_dir, quiet=True)
    return versions


def translate_nbest(self, texts, number):
    return [[Hypothesis(text, 0.0, 0.0, ())] for text in texts]


@pytest.fixture
def folder(made, monkeypatch):
    """That folder in a new process, in which nothing is noted yet."""
    monkeypatch.setattr(
        Translator, "translate", lambda self, texts, **_: list(texts)
    )
    monkeypatch.setattr(Translator, "translate_nbest", translate_nbest)
    with new_process(made / "home", made):
        (made / "noted").unlink(missing_ok=True)
        yield made


def changes(version):
    return {
        "import": [f"{version}/mine.py"],
        "training.steps": 1,
        "training.validate_every": 1,
        "training.average_checkpoints": 1,
        "training.loss": "Focal",
    }


def noted(folder):
    return set((folder / "noted").read_text().splitlines())


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["Focal", "focal"])
def test_a_teacher_has_its_code_and_the_student_its_own(
    loss, folder, recipe_file, prepared_dir, tmp_path
):
    own = changes("2") | {
        "training.loss": loss,
        "training.objective.distillation.teacher": "other",
    }
    recipe = load_recipe(recipe_file, own)
    train(recipe, tmp_path / "run", prepared_dir=prepared_dir, quiet=True)
    assert noted(folder) == {"loss 2"}


@pytest.mark.thorough
def test_the_callbacks_are_not_those_of_the_run_it_starts_from(
    folder, recipe_file, prepared_dir, tmp_path
):
    own = changes("2") | {
        "training.callbacks": ["Noting"],
        "training.initialize_from": "other",
    }
    recipe = load_recipe(recipe_file, own)
    train(recipe, tmp_path / "run", prepared_dir=prepared_dir, quiet=True)
    assert noted(folder) == {"loss 2", "callback 2"}


@pytest.mark.thorough
def test_the_filters_are_not_those_of_a_teacher_that_translates(
    folder, recipe_file, tmp_path
):
    own = {"import": ["2/mine.py"], "data.filters": ["keep"]}
    recipe = settle_code(load_recipe(recipe_file, own), None, None)
    (corpus,) = recipe.data.train
    corpus = replace(corpus, target=None, translated_by="other")
    recipe = replace(recipe, data=replace(recipe.data, train=[corpus]))
    open_data(recipe, RunFolder(tmp_path / "run"), quiet=True)
    assert noted(folder) == {"filter 2"}


def test_names_mean_the_same_classes_as_before(versions, tmp_path):
    def named():
        return [
            find_own("Focal", object),
            find_own("mine.Focal", object),
            type(get_loss("focal")),
            get_preset("mine_tiny").__globals__["Focal"],
            keras.saving.get_registered_object("mine>Focal"),
            sys.modules["mine"].Focal,
        ]

    with new_process(tmp_path / "home", versions):
        for version in ("1", "2"):
            allow_code([f"{version}/mine.py"])
        use_code(["2/mine.py"])
        (own,) = set(named())
        with code_of_another_model():
            use_code(["1/mine.py"])
            assert own not in named()
            other = get_preset("mine_tiny")
        assert set(named()) == {own}
        for version, preset in (("1", other), ("2", get_preset("mine_tiny"))):
            # Those of another model are still found.
            with pytest.raises(UserError, match=rf"^{version}/mine\.py, line "):
                with own_errors():
                    preset(11, 13)
