"""Files that version 0.1.0 saved still load and mean the same.

`saved_by_0.1.0.tar.xz` holds what `write_saved_files.py` wrote with the code
of that version:

* `.keras` files and a preset give the scores that were stored with them
* a prepared folder is read, and a finished run in it translates as it did
* checkpoints of a finished run are averaged to its own final weights
* an interrupted run resumes and ends with the weights of an uninterrupted one
* an export of the run is verified, and translates as the run did
"""

import tarfile
from pathlib import Path

import keras
import numpy as np
import pytest
from write_saved_files import SENTENCES

import keras_deepnmt
from keras_deepnmt.data import PreparedData
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.runs.average import average
from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.serving import SavedModelClient, verify
from keras_deepnmt.translator.loading import read_run

ARCHIVE = Path(__file__).with_name("saved_by_0.1.0.tar.xz")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    return folder


def check_scores(model, saved, name):
    with np.load(saved / "scores.npz") as arrays:
        inputs = {key: arrays[key] for key in ("source_ids", "target_ids")}
        np.testing.assert_allclose(
            model.predict_on_batch(inputs), arrays[name], atol=1e-5
        )


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["transformer", "conv_seq2seq"])
def test_a_keras_file_loads(saved, name):
    check_scores(keras.saving.load_model(saved / f"{name}.keras"), saved, name)


@pytest.mark.thorough
def test_a_preset_loads(saved):
    model = keras_deepnmt.models.Transformer.from_preset(str(saved / "preset"))
    check_scores(model, saved, "transformer")


def test_a_prepared_folder_is_read(saved):
    data = PreparedData(saved / "prepared")
    sources, targets = data.texts("valid")
    assert len(sources) == len(targets) == 5
    assert (
        len(data.store("train").lengths)
        == data.manifest["splits"]["train"]["pairs"]
    )


@pytest.mark.thorough(each_commit=True)
def test_a_finished_run_translates_as_it_did(saved):
    assert read_run(saved / "run").preset_version == 2
    translator = keras_deepnmt.Translator.load(saved / "run")
    expected = (saved / "translations.txt").read_text().splitlines()
    assert translator.translate(SENTENCES) == expected


@pytest.mark.thorough
def test_a_finished_run_is_evaluated_with_its_own_options(saved):
    row = evaluate(saved / "run", prepared_dir=saved / "prepared")
    assert row["decoding"]["num_beams"] == 2
    assert row["decoding"]["length_offset"] == 0.0
    assert row["test_set"]["sentences"] == 7


@pytest.mark.thorough
def test_checkpoints_of_a_finished_run_are_averaged(saved, tmp_path):
    average(saved / "run", tmp_path / "mean", last=2)
    expected, received = (
        keras_deepnmt.Translator.load(folder).model.get_weights()
        for folder in (saved / "run", tmp_path / "mean")
    )
    for one, other in zip(expected, received, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_finished_run_is_not_trained_again(saved, monkeypatch):
    monkeypatch.chdir(saved)
    before = RunFolder("run").read_summary()
    after = train("letters.yaml", "run", prepared_dir="prepared", quiet=True)
    assert after == before


@pytest.mark.thorough
def test_an_interrupted_run_resumes(saved, monkeypatch):
    monkeypatch.chdir(saved)
    recipe = load_recipe("letters.yaml")
    summary = train(recipe, "interrupted", prepared_dir="prepared", quiet=True)
    assert summary["steps"] == 6 and summary["averaged_steps"] == [5, 6]
    expected, received = (
        keras_deepnmt.Translator.load(folder).model.get_weights()
        for folder in ("run", "interrupted")
    )
    for one, other in zip(expected, received, strict=True):
        # Another processor rounds differently.
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.thorough
def test_an_export_is_verified(saved):
    golden = saved / "export" / "1" / "assets.extra" / "golden.jsonl"
    number = len(golden.read_text().splitlines())
    assert verify(saved / "export").num_sentences == number > 3


@pytest.mark.thorough
def test_an_export_translates_as_the_run_did(saved):
    expected = (saved / "translations.txt").read_text().splitlines()
    assert SavedModelClient(saved / "export").translate(SENTENCES) == expected
