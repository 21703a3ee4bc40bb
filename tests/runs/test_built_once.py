"""What must be true of the way from a checkpoint to a model.

* a command builds each model that it uses once, from a finished run and from a
  checkpoint, also if the run keeps a moving average or froze weights
* the model of a checkpoint has no optimizer, and none of its weights is frozen
"""

import pytest

from keras_deepnmt import cli
from keras_deepnmt.models.seq2seq import Seq2Seq
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.checkpoints import load_model
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def averaged(recipe_file, prepared_dir, tmp_path_factory):
    """A finished run with a moving average, frozen weights, two checkpoints."""
    run_dir = tmp_path_factory.mktemp("built") / "run"
    changes = {
        "training.steps": 2,
        "training.average_checkpoints": 1,
        "training.optimizer.average_momentum": 0.5,
        "training.freeze": ["encoder*"],
    }
    recipe = load_recipe(recipe_file, changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", lambda self, texts: list(texts))
        train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


@pytest.fixture
def built(monkeypatch):
    """The models built since the test began."""
    models, init = [], Seq2Seq.__init__

    def count(model, *args, **kwargs):
        models.append(model)
        init(model, *args, **kwargs)

    monkeypatch.setattr(Seq2Seq, "__init__", count)
    return models


LATEST = ["--checkpoint", "latest"]
PLAIN = ["--no-compile", "-q"]
GREEDY = ["--num-beams", "1", *PLAIN]
TEXTS = ["--source", "{folder}/test.source", "--target", "{folder}/test.target"]


COMMANDS = {
    "translate": ["--input", "{folder}/test.source", *GREEDY],
    "score": [*TEXTS, *PLAIN],
    "evaluate": GREEDY,
}


@pytest.mark.parametrize(
    ("verb", "checkpoint"),
    [
        # Each verb and each kind of checkpoint in every run.
        pytest.param("translate", [], id="translate-final"),
        pytest.param("score", LATEST, id="score-latest"),
        *(
            pytest.param(*pair, id=name)
            for name, pair in {
                "translate-latest": ("translate", LATEST),
                "score-final": ("score", []),
                "evaluate-latest": ("evaluate", LATEST),
            }.items()
        ),
        pytest.param("evaluate", [], id="evaluate-final"),
    ],
)
def test_a_command_builds_the_model_once(
    verb, checkpoint, averaged, recipe_file, built
):
    folder = recipe_file.parent
    words = [word.format(folder=folder) for word in COMMANDS[verb]]
    assert cli.main([verb, str(averaged), *words, *checkpoint]) == 0
    assert len(built) == 1


def test_an_average_builds_the_model_once(averaged, tmp_path, built):
    command = ["average", str(averaged), "--last", "2"]
    assert cli.main([*command, "--output", str(tmp_path / "mean")]) == 0
    assert len(built) == 1


def test_the_model_of_a_checkpoint_is_as_new(averaged, built):
    model = load_model(averaged, 2)
    assert built == [model] and not model.compiled
    assert getattr(model, "optimizer", None) is None
    assert all(weight.trainable for weight in load_model(averaged).weights)
    assert all(weight.trainable for weight in model.weights)
