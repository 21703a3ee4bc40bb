"""What must be true of the shortlists that a run keeps.

* a run has a copy of those of its prepared folder, or none
* a restart with other data replaces or deletes them when the run is finished
* averaged runs and preset folders have a copy of the run's, or none
"""

import shutil

import pytest

from keras_deepnmt.data import Shortlists, prepare_corpus
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs import preset_folder
from keras_deepnmt.runs.average import average
from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.runs.preset_folder import save_run_to_preset
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough

WITH_SHORTLISTS = {"data.shortlist_targets": 3}
SHORT = {"training.steps": 2, "training.validate_every": 2}


@pytest.fixture(scope="module")
def with_shortlists(recipe_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared") / "shortlists"
    recipe = load_recipe(recipe_file, WITH_SHORTLISTS)
    prepare_corpus(recipe.data, folder, progress=False)
    return folder


@pytest.fixture(scope="module")
def run_dir(recipe_file, with_shortlists, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "letters"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", lambda self, texts: list(texts))
        recipe = load_recipe(recipe_file, SHORT)
        train(recipe, run_dir, prepared_dir=with_shortlists, quiet=True)
    return run_dir


def test_a_run_has_a_copy(run_dir, with_shortlists):
    run = RunFolder(run_dir)
    assert run.shortlist_file == run_dir / "shortlist.npz"
    expected = (with_shortlists / "shortlist.npz").read_bytes()
    assert run.shortlist_file.read_bytes() == expected
    shortlists = Shortlists.load(run.shortlist_file)
    assert shortlists.by_source.shape == (20, 3)
    assert run.recipe().data.shortlist_targets == 3


def test_averaged_runs_and_preset_folders_have_a_copy(run_dir, tmp_path):
    expected = RunFolder(run_dir).shortlist_file.read_bytes()
    average(run_dir, tmp_path / "mean", last=2)
    save_run_to_preset(run_dir, tmp_path / "preset")
    for name in ("mean", "preset"):
        assert (tmp_path / name / "shortlist.npz").read_bytes() == expected


class Begun(Exception):
    """Ends a run at its first update."""


def begin(loop):
    raise Begun


def test_a_new_run_has_them_from_its_beginning(
    recipe_file, with_shortlists, prepared_dir, tmp_path, monkeypatch
):
    monkeypatch.setattr(TrainingLoop, "run", begin)
    run = RunFolder(tmp_path / "run")
    for folder, restart in (
        (with_shortlists, False),
        (prepared_dir, True),
        (with_shortlists, True),
    ):
        with pytest.raises(Begun):
            train(
                recipe_file,
                run.directory,
                prepared_dir=folder,
                restart=restart,
                quiet=True,
            )
        assert run.shortlist_file.is_file() is (folder == with_shortlists)


def test_a_finished_run_keeps_its_own_until_it_is_replaced(
    recipe_file, run_dir, prepared_dir, tmp_path, without_search
):
    run = RunFolder(shutil.copytree(run_dir, tmp_path / "run"))
    expected = run.shortlist_file.read_bytes()

    def train_again():
        train(
            load_recipe(recipe_file, SHORT),
            run.directory,
            prepared_dir=prepared_dir,
            restart=True,
            quiet=True,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingLoop, "run", begin)
        with pytest.raises(Begun):
            train_again()
    assert run.shortlist_file.read_bytes() == expected
    train_again()
    assert run.is_finished() and not run.shortlist_file.exists()
    with pytest.MonkeyPatch.context() as patch:
        # Its translations do not matter here.
        patch.setattr(preset_folder, "_verify", lambda *_: None)
        save_run_to_preset(run.directory, tmp_path / "preset")
    assert not (tmp_path / "preset" / "shortlist.npz").exists()
