"""What must be true of the preset folder that is written from a run.

* `Translator.load` reads it and translates as the run does; so do the commands
* the model alone loads as a Keras preset
* its model card has the metadata of Hugging Face, the scores with their
  signatures, and a snippet that runs; no path of this machine is in it
* a checkpoint of an unfinished run can be saved, with other search options
* it appears complete or not at all, and no run can train in it
"""

import dataclasses
import json
import os
import re

import keras
import numpy as np
import pytest
import yaml

import keras_deepnmt
from keras_deepnmt import cli
from keras_deepnmt.data import PreparedData
from keras_deepnmt.data.known_corpora.finding import list_named_corpora
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.runs.model_card import model_card, terms_of_use
from keras_deepnmt.runs.preset_folder import save_run_to_preset
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator
from keras_deepnmt.weights_files import opened_weights

pytestmark = pytest.mark.thorough(each_commit=True)

TEXTS = ["a b c", "h g f e", ""]
LANGUAGES = {"data.source_language": "en", "data.target_language": "de"}


@pytest.fixture(scope="module")
def run_dir(recipe_file, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "letters"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Translator, "translate", lambda self, texts, **_: list(texts)
        )
        train(load_recipe(recipe_file, LANGUAGES), run_dir, quiet=True)
        evaluate(run_dir)
        evaluate(run_dir, checkpoint=5)
    return run_dir


@pytest.fixture(scope="module")
def preset_dir(run_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "letters-preset"
    assert save_run_to_preset(run_dir, folder) == folder
    return folder


def weights(folder):
    return Translator.load(folder).model.get_weights()


def test_a_translator_of_it_is_that_of_the_run(run_dir, preset_dir):
    run, preset = (
        Translator.load(folder, compiled=False)
        for folder in (run_dir, preset_dir)
    )
    assert preset.options == run.options
    assert preset.batch_size == run.batch_size
    assert preset.translate(TEXTS) == run.translate(TEXTS)
    one, other = run.score("a b", "b a"), preset.score("a b", "b a")
    assert one.tokens == other.tokens
    np.testing.assert_allclose(one.total, other.total, rtol=1e-6)
    for expected, received in zip(
        run.model.get_weights(), preset.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(expected, received)


@pytest.mark.thorough
def test_the_model_alone_is_a_keras_preset(preset_dir, run_dir):
    model = keras_deepnmt.models.Transformer.from_preset(str(preset_dir))
    for expected, received in zip(
        weights(run_dir), model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(expected, received)


def test_the_card_says_what_the_model_is(run_dir, preset_dir, recipe_file):
    text = (preset_dir / "README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    metadata = yaml.safe_load(front)
    assert "license" not in metadata and "# license:" in front
    assert metadata["pipeline_tag"] == "translation"
    assert metadata["language"] == ["en", "de"]
    assert metadata["metrics"] == ["chrf", "sacrebleu", "ter"]
    assert "| ter (lower is better) |" in body and "| bleu |" in body
    assert {"translation", "arxiv:1706.03762"} <= set(metadata["tags"])
    rows = json.loads((run_dir / "scores.json").read_text())["evaluations"]
    score = rows[0]["scores"]["bleu"]
    (result,) = metadata["model-index"][0]["results"]
    assert result["metrics"][0] == {
        "type": "sacrebleu",
        "name": score["signature"],
        "value": round(score["value"], 2),
    }
    run = RunFolder(run_dir).read_summary()
    pairs = PreparedData(run_dir / "data").manifest["splits"]["train"]["pairs"]
    corpus = next(
        each
        for each in RunFolder(run_dir).recipe().resolved["corpora"]
        if each["split"] == "train"
    )
    for expected in (
        f"{run['parameters']:,} parameters",
        f"{score['value']:.2f}",
        score["signature"].replace("|", r"\|"),
        run["commit"],
        f"keras {keras.__version__}",
        "Attention Is All You Need",
        f"| train | train | {pairs} | `{corpus['sha256']['source']}` |",
        "from `en` to `de`. It was trained on `train`",
        "A source is read up to",
        f"with the seed {run['seed']}",
        *("## Limits", "For the author of this card to fill in"),
        "--from-preset letters-preset",
    ):
        assert expected in body
    for file in preset_dir.rglob("*.*"):
        if file.suffix in (".md", ".json"):
            assert str(run_dir.parent) not in file.read_text()
    resolved = RunFolder(preset_dir).recipe().resolved
    assert "/" not in resolved["corpora"][0]["source"]


@pytest.mark.thorough
def test_the_card_tells_what_has_changed_in_the_course_of_the_run(run_dir):
    run = RunFolder(run_dir)
    summary = {**run.read_summary(), "scores": []}
    plain = model_card(run.recipe(), summary, "Transformer", "letters")
    assert "changed after" not in plain and "the changes above" not in plain
    values = {"before": 64, "after": 32}
    change = {"update": 4000, "keys": {"training.batch_tokens": values}}
    resolved = {**run.recipe().resolved, "changes": [change]}
    recipe = dataclasses.replace(run.recipe(), resolved=resolved)
    card = model_card(recipe, summary, "Transformer", "letters")
    row = "| changed after update 4,000 | `training.batch_tokens` from 64 to 32"
    assert row in card and "and the changes above." in card


@pytest.mark.thorough
def test_the_card_has_sentences_of_the_test_set(run_dir, preset_dir):
    text = (preset_dir / "README.md").read_text(encoding="utf-8")
    part = text.partition("## Examples\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines()[5:]]
    sources, references = PreparedData(run_dir / "data").texts("test")
    assert len(rows) == 5
    places = [sources.index(source) for source, _, _ in rows]
    assert places[0] == 0 and places == sorted(set(places))
    for source, translation, reference in rows:
        # This translator gives sources back.
        assert translation == source
        assert reference in references


def test_the_card_has_no_examples_that_were_not_recorded(run_dir):
    recipe = RunFolder(run_dir).recipe()
    summary = RunFolder(run_dir).read_summary() | {"scores": []}
    card = model_card(recipe, summary, "Transformer", "folder")
    assert "None were recorded" in card
    example = dict.fromkeys(("source", "translation", "reference"), "a|*b* <c>")
    row = {
        "test_set": {"name": "test", "sentences": 1},
        "scores": {},
        "decoding": {},
        "examples": [example],
    }
    card = model_card(
        recipe, summary | {"scores": [row]}, "Transformer", "folder"
    )
    # Signs of Markdown are letters of the text.
    assert r"| a\|\*b\* \<c\> |" in card


def test_the_card_leads_to_the_terms_of_every_known_corpus():
    for name in list_named_corpora():
        assert re.match("written by|those of ", terms_of_use(name)), name
    assert terms_of_use("wmt14_en_de").count("https://") == 2
    assert terms_of_use("mine") == "own text: those of its owner"


@pytest.mark.thorough
def test_the_snippets_of_the_card_run(preset_dir, monkeypatch, capsys):
    monkeypatch.chdir(preset_dir.parent)
    text = (preset_dir / "README.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(snippets) == 2
    for snippet in snippets:
        exec(snippet, {})  # noqa: S102
    assert capsys.readouterr().out.startswith("[")


@pytest.mark.thorough
def test_a_checkpoint_can_be_saved_by_the_command(run_dir, tmp_path, capsys):
    folder = tmp_path / "fifth"
    command = ["export", str(run_dir), str(folder), "--format", "preset"]
    command += ["--checkpoint", "5", "--num-beams", "1", "--quiet"]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.strip() == str(folder)
    translator = Translator.load(folder)
    assert translator.num_beams == 1
    fifth = RunFolder(run_dir).checkpoints().path(5)
    expected = keras_deepnmt.models.Transformer.from_preset(
        str(folder), load_weights=False
    )
    expected.load_weights(fifth / "model.weights.h5")
    for one, other in zip(
        expected.get_weights(), translator.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    summary = json.loads((folder / "translator.json").read_text())
    assert summary["averaged_steps"] == [5]
    # The score is that of the checkpoint, not that of the final model.
    assert [row["checkpoint"] for row in summary["scores"]] == [5]
    assert cli.main(command) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.thorough
def test_weights_can_be_stored_as_float16(run_dir, preset_dir, tmp_path):
    folder = tmp_path / "half"
    save_run_to_preset(run_dir, folder, dtype="float16")
    for one, other in zip(weights(preset_dir), weights(folder), strict=True):
        rounded = one.astype("float16").astype("float32")
        np.testing.assert_array_equal(rounded, other)
    with opened_weights(folder / "model.weights.h5") as file:
        types = []
        file.visititems(lambda _, item: types.append(getattr(item, "dtype", 0)))
    assert np.dtype("float16") in types and np.dtype("float32") not in types
    # The run's scores are those of other weights.
    assert json.loads((folder / "translator.json").read_text())["scores"] == []


def test_other_types_of_weights_are_refused(run_dir, tmp_path, capsys):
    with pytest.raises(UserError, match="must be one of float32, float16"):
        save_run_to_preset(run_dir, tmp_path / "preset", dtype="int8")
    words = ["export", str(run_dir), str(tmp_path / "x"), "--dtype", "float16"]
    assert cli.main(words) == 2
    assert "--dtype must be float32 or bfloat16" in capsys.readouterr().err


def test_a_saved_model_that_differs_is_not_kept(run_dir, tmp_path, monkeypatch):
    save = keras_deepnmt.models.Transformer.save_to_preset

    def save_others(model, folder):
        model.set_weights([weight + 1 for weight in model.get_weights()])
        save(model, folder)
        model.set_weights([weight - 2 for weight in model.get_weights()])

    monkeypatch.setattr(
        keras_deepnmt.models.Transformer, "save_to_preset", save_others
    )
    with pytest.raises(UserError, match="does not translate as that"):
        save_run_to_preset(run_dir, tmp_path / "preset")
    assert os.listdir(tmp_path) == []


def test_a_changed_file_is_refused(preset_dir, tmp_path):
    folder = tmp_path / "changed"
    folder.mkdir()
    for file in preset_dir.rglob("*.*"):
        if file.is_file():
            copy = folder / file.relative_to(preset_dir)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(file.read_bytes())
    tokenizer = folder / "tokenizer" / "source.model"
    content = tokenizer.read_bytes()
    tokenizer.unlink()
    with pytest.raises(UserError, match="source.model: cannot be read"):
        Translator.load(folder)
    tokenizer.write_bytes(content)
    with open(folder / "model.weights.h5", "ab") as file:
        file.write(b"more")
    with pytest.raises(UserError, match=r"must be that in translator\.json"):
        Translator.load(folder)


def test_it_is_no_folder_to_train_in(recipe_file, preset_dir):
    for restart in (False, True):
        with pytest.raises(UserError, match="is a preset folder"):
            train(recipe_file, preset_dir, restart=restart, quiet=True)
    with pytest.raises(UserError, match="is a preset folder already"):
        save_run_to_preset(preset_dir, preset_dir.parent / "again")
