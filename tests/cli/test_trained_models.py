"""What must be true of the trained models that come with the package.

* each translates by its name, everywhere where a run folder is taken
* its card tells use, limits, license and the scores that were measured of it
* no command writes into the package
"""

import csv
import json
import os
import re
from pathlib import Path

import pytest

from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.data.known_corpora.finding import find_named_corpus
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import corpus_scores
from keras_deepnmt.models.transformer_layers import SLOTS
from keras_deepnmt.recipes.bundled import bundled_names
from keras_deepnmt.recipes.loading import fine_tuned_model, load_recipe
from keras_deepnmt.runs.initial_weights import fine_tuning
from keras_deepnmt.trained import (
    USUAL_MODEL,
    describe_trained_model,
    find_run_folder,
    list_trained_models,
    output_folder,
)
from keras_deepnmt.translator import Translator

DEMO = "transformer_tiny.demo_de_en"
ROWS = Path(__file__).parents[2] / "benchmarks/quality/results"
# Bytes of one model, and of all.
MOST, MOST_OF_ALL = 26e6, 70e6


def content(folder):
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*")}


@pytest.fixture
def untouched():
    """The folder of the model, in which the test may change nothing."""
    folder = find_run_folder(DEMO)
    before = content(folder)
    yield folder
    assert content(folder) == before


def test_the_models_are_small_enough_for_a_wheel():
    sizes = [describe_trained_model(m)["bytes"] for m in list_trained_models()]
    assert sizes and max(sizes) <= MOST and sum(sizes) <= MOST_OF_ALL


@pytest.mark.parametrize("name", list_trained_models())
def test_a_model_has_a_recipe_and_a_whole_card(name):
    assert name in bundled_names()
    card = (find_run_folder(name) / "README.md").read_text(encoding="utf-8")
    assert "to fill in" not in card and "## Examples" not in card
    for section in ("Intended use", "Limits", "Scores", "License"):
        assert f"\n## {section}\n" in card


@pytest.mark.parametrize("name", list_trained_models())
def test_the_scores_are_those_that_were_measured(name):
    folder = find_run_folder(name)
    summary = json.loads((folder / "translator.json").read_text())
    card = (folder / "README.md").read_text(encoding="utf-8")
    with open(ROWS / "trained_models.csv", newline="") as file:
        rows = {
            row["test_set"]: row
            for row in csv.DictReader(file)
            if row["weights_sha256"] == summary["weights_sha256"]
        }
    scores = describe_trained_model(name)["scores"]
    assert scores and len(rows) == len(scores)
    for score in scores:
        row = rows[score["test_set"]]
        assert float(row["bleu"]) == round(score["bleu"], 2)
        assert float(row["chrf"]) == round(score["chrf"], 2)
        assert f"{row['bleu']} ± {row['bleu_interval']}" in card
        # What float16 costs.
        assert float(row["bleu_float32"]) - float(row["bleu"]) <= 0.1


def test_no_sentence_of_a_test_set_is_in_the_folder():
    for name in list_trained_models():
        folder = find_run_folder(name)
        for file in ("scores.json", "translator.json"):
            assert '"examples"' not in (folder / file).read_text()


@pytest.mark.thorough
def test_it_translates_as_well_as_it_says():
    pairs = demo_pairs(520)[500:]
    translator = Translator.from_preset(DEMO, compiled=False, num_beams=1)
    translations = translator.translate([pair.source for pair in pairs])
    bleu = corpus_scores(translations, [pair.target for pair in pairs])["bleu"]
    assert bleu.value > 70


@pytest.mark.thorough
def test_the_snippets_of_its_card_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    card = (find_run_folder(DEMO) / "README.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    assert len(snippets) == 2
    for snippet in snippets:
        exec(snippet, {})  # noqa: S102
    assert capsys.readouterr().out.startswith("[")


@pytest.mark.thorough(each_commit=True)
def test_commands_take_its_name(deepnmt, untouched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (pair,) = demo_pairs(501)[500:]
    Path("source").write_text(f"{pair.source}\n")
    Path("target").write_text(f"{pair.target}\n")
    done = deepnmt("translate", DEMO, stdin="source")
    assert done.code == 0 and done.out.strip()
    texts = ("--source", "source", "--target", "target")
    done = deepnmt("evaluate", DEMO, *texts, "--no-compile")
    assert done.code == 0 and done.out.startswith("bleu\t"), done.err
    assert "recorded" not in done.err
    done = deepnmt("analyze", DEMO, *texts, "--what", "embeddings")
    assert done.code == 0 and done.out.startswith("figures/")
    assert Path("figures").is_dir()
    # So does the page of `deepnmt report`.
    assert output_folder(untouched) == Path()


def test_a_run_can_start_from_it_by_name(tmp_path):
    model = fine_tuned_model(tmp_path / "run", DEMO)
    assert model["preset"] == "transformer_tiny"
    recipe = load_recipe(DEMO)
    tuning = fine_tuning(recipe, recipe.data, None, DEMO, has_prepared=False)
    folder = find_run_folder(DEMO)
    assert tuning.initialize_from == str(folder)
    assert tuning.data.tokenizer_source == str(
        folder / "tokenizer/source.model"
    )


def test_an_own_folder_of_the_name_comes_first(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir(DEMO)
    assert "not a finished run" in refused("translate", DEMO)


def test_a_misspelt_name_leads_to_the_right_one():
    with pytest.raises(UserError, match=f'Did you mean "{DEMO}"'):
        Translator.from_preset(DEMO.replace("tiny", "tinny"))


def test_commands_take_a_plain_model_where_none_is_named():
    assert USUAL_MODEL in list_trained_models()
    file = find_run_folder(USUAL_MODEL) / "config.json"
    arguments = json.loads(file.read_text())["config"]
    assert not any(arguments.get(slot) for slot in SLOTS)


def test_the_list_has_scores_size_license_and_card(deepnmt):
    done = deepnmt("models", "--trained")
    assert done.code == 0
    heading, *lines = done.out.splitlines()
    assert heading.split()[:3] == ["model", "BLEU", "chrF"]
    assert [line.split()[0] for line in lines] == list_trained_models()
    line = next(line for line in lines if line.startswith(DEMO))
    card = Path(line.split()[-1])
    assert "apache-2.0" in line and card.read_text().startswith("---\n")
    found = json.loads(deepnmt("models", DEMO, "--trained", "--json").out)
    assert found == [describe_trained_model(DEMO)]
    done = deepnmt("models", "--trained", "--quiet")
    assert done.out.split() == list_trained_models()


def test_the_training_text_of_each_model_may_be_passed_on():
    """Only these corpora have licenses that allow it."""
    for name in list_trained_models():
        corpus = name.split(".")[1]
        assert find_named_corpus(corpus)
        assert corpus.rsplit("_", 2)[0] in ("demo", "tatoeba")
