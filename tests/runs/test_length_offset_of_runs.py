"""What must be true of `decoding.length_offset` in a run.

* every search of a run takes the recipe's, and its scores say so
* a folder written before the key existed has the offset 5
"""

import json
import shutil

import pytest
import yaml

from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough

BRIEF = {
    "training.steps": 1,
    "training.validate_every": 1,
    "training.validation_budget": None,
    "training.average_checkpoints": 1,
}
PLAIN = {**BRIEF, "decoding.length_offset": 0}


@pytest.fixture(scope="module")
def searches():
    """The offset of each call of `translate`, which gives sentences back."""
    offsets = []

    def translate(self, texts, **_):
        offsets.append(self.length_offset)
        return list(texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", translate)
        yield offsets


@pytest.fixture(scope="module")
def run_dir(recipe_file, prepared_dir, searches, tmp_path_factory):
    """A run of one update with the offset 0."""
    run_dir = tmp_path_factory.mktemp("runs") / "plain"
    recipe = load_recipe(recipe_file, PLAIN)
    train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    # While training, and at the end.
    assert searches == [0.0, 0.0]
    return run_dir


@pytest.fixture
def old_dir(run_dir, tmp_path):
    """The same folder as if written before the key existed."""
    folder = shutil.copytree(run_dir, tmp_path / "old")
    run = RunFolder(folder)
    run.scores_file.unlink(missing_ok=True)
    content = run.read_summary()
    del content["decoding"]["length_offset"]
    run.run_file.write_text(json.dumps(content))
    recipe = yaml.safe_load(run.recipe_file.read_text())
    del recipe["decoding"]["length_offset"]
    run.recipe_file.write_text(yaml.safe_dump(recipe))
    return folder


def offsets_of(scores):
    return [row["decoding"].get("length_offset") for row in scores]


def test_a_run_and_its_scores_say_the_offset(run_dir, searches):
    assert RunFolder(run_dir).read_summary()["decoding"]["length_offset"] == 0
    assert Translator.load(run_dir).length_offset == 0
    del searches[:]
    rows = [evaluate(run_dir), evaluate(run_dir, length_offset=2.0)]
    assert searches == offsets_of(rows) == [0, 2]
    scores = json.loads(RunFolder(run_dir).scores_file.read_text())
    assert offsets_of(scores["evaluations"]) == [0, 2]


def test_an_old_folder_has_the_offset_of_gnmt(old_dir, searches):
    del searches[:]
    assert evaluate(old_dir)["decoding"]["length_offset"] == 5
    assert searches == [5]
    # A row of the same kind takes the place of one that says no offset.
    file = RunFolder(old_dir).scores_file
    scores = json.loads(file.read_text())
    del scores["evaluations"][0]["decoding"]["length_offset"]
    file.write_text(json.dumps(scores))
    evaluate(old_dir, length_offset=0.0)
    scores = json.loads(file.read_text())["evaluations"]
    assert offsets_of(scores) == [None, 0]
    evaluate(old_dir, length_offset=5.0)
    scores = json.loads(file.read_text())["evaluations"]
    assert offsets_of(scores) == [0, 5]


def test_an_old_folder_has_the_offset_of_gnmt_until_its_recipe_has_another(
    old_dir, recipe_file
):
    usual = load_recipe(recipe_file, BRIEF)
    before = train(usual, old_dir, quiet=True)
    assert before["steps"] == 1 and "length_offset" not in before["decoding"]
    after = train(load_recipe(recipe_file, PLAIN), old_dir, quiet=True)
    assert after["steps"] == 1 and after["decoding"]["length_offset"] == 0
    assert after["weights_sha256"] == before["weights_sha256"]
