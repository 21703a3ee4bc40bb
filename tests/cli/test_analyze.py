"""What must be true of `deepnmt analyze` and `deepnmt report`, for their users.

* figures are written as PNG, SVG and CSV, and the files are printed
* a report is one HTML file that needs no other and no network, and holds the
  scores, curves, sentences and figures of all runs, seeds summed up
* what cannot be analysed is refused in one line
"""

import html.parser
import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from jsonargparse import Namespace

from keras_deepnmt import create_model
from keras_deepnmt.commands.options.analyzed_sentences import check_roles
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator


class Page(html.parser.HTMLParser):
    """Collects the tags, their attributes and the text of a page."""

    VOID = {"meta", "br", "img", "link", "input"}

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes, self.texts = [], [], []
        self.headings = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data)


@pytest.fixture
def runs(digits, tmp_path, monkeypatch):
    """Two copies of a run in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        shutil.copytree(digits / "run", tmp_path / name)
        (tmp_path / name / "scores.json").unlink(missing_ok=True)
    return tmp_path


def change_recipe(folder, *section, **values):
    """Changes the recipe that a run was started with."""
    content = yaml.safe_load((folder / "recipe.yaml").read_text())
    place = content
    for name in section:
        place = place[name]
    place.update(values)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(content))


@pytest.mark.thorough(each_commit=True)
def test_figures_are_written_and_printed(deepnmt, runs):
    done = deepnmt("analyze", "first", "--what", "lens", "ablation")
    assert done.code == 0, done.err
    assert "lens: what each decoder block would predict" in done.err
    files = [runs / line for line in done.out.splitlines()]
    assert all(file.is_file() for file in files)
    assert {file.parent for file in files} == {runs / "first" / "figures"}
    names = {file.name for file in files}
    assert {"layer_lens.png", "layer_lens.svg", "layer_lens.csv"} <= names
    assert "source_ablation_1.png" in names
    words = ["--what", "similarity", "--output", "drawn", "--quiet"]
    files = [runs / "texts.source", runs / "texts.target"]
    for file in files:
        file.write_text("1 2 3\n")
    words += ["--source", files[0], "--target", files[1]]
    done = deepnmt("analyze", "first", *words)
    # A model of one block has no pairs of blocks.
    assert done.code == 2 and "it lacks two blocks" in done.err


def test_what_cannot_be_analysed_is_refused(refused, runs):
    error = refused("analyze", "first", "--what", "atention")
    assert 'Did you mean "attention"?' in error
    error = refused("analyze", "first", "--what", "roles", "--quiet")
    assert "lacks role interaction" in error
    assert not (runs / "first" / "figures").exists()
    assert "given together" in refused("analyze", "first", "--source", "x")
    assert "given more than once" in refused("report", "first", "first")
    error = refused("report", "first", "--output", "missing/report.html")
    assert "missing/report.html: cannot be written (no folder" in error


@pytest.mark.parametrize("verb", ["analyze", "report"])
def test_a_missing_package_is_told_before_the_work(
    refused, runs, monkeypatch, verb
):
    def fail(*args, **options):
        raise AssertionError("The model must not be loaded.")

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(Translator, "load", fail)
    error = refused(verb, "first")
    assert "needs the package matplotlib" in error
    assert 'pip install "keras_deepnmt[analysis]"' in error


def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    refused, runs, monkeypatch
):
    def fail(*args, **options):
        raise AssertionError("No report must be made.")

    monkeypatch.setattr(Translator, "load", fail)
    # Its own name is short enough; that of the file beside it is not.
    name = "r" * 250
    assert "File name too long" in refused("report", "first", "-o", name)


def test_figures_that_cannot_be_written_are_refused_before_the_work(
    refused, runs, monkeypatch
):
    def fail(*args, **options):
        raise AssertionError("No figure must be made.")

    monkeypatch.setattr(Translator, "load", fail)
    (runs / "file").write_text("mine")
    for folder in ("file", "file/figures"):
        error = refused("analyze", "first", "-o", folder)
        assert f"{folder}: cannot be written (Not a directory)" in error
    assert (runs / "file").read_text() == "mine"


@pytest.mark.thorough
def test_a_report_is_one_page_with_everything(deepnmt, runs):
    change_recipe(runs / "second", seed=5)
    shutil.copytree(runs / "first", runs / "other")
    change_recipe(runs / "other", "training", label_smoothing=0.3)
    words = ["--sentences", "20", "--resamples", "100"]
    done = deepnmt("report", "first", "second", "other", *words)
    assert done.code == 0, done.err
    assert done.out == "first/report.html\n"
    text = (runs / "first" / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    for expected in (
        *("Runs", "Scores", "Training", "Sentences", "Inside the models"),
        *("Scores over seeds", "BLEU over seeds", "chrF of each run"),
        "Differences from transformer_tiny.digits (label_smoothing=0.1) over "
        "seeds",
        *("Differences between runs", "Sign test"),
        *("BLEU by the length of the source", "Translations side by side"),
        *("Validation loss", "Entropy of attention: first"),
    ):
        assert expected in page.headings
    # One run of each recipe is looked into.
    assert "Entropy of attention: other" in page.headings
    assert "Entropy of attention: second" not in page.headings
    # Links lead to places of the page; nothing is loaded from elsewhere.
    for tag, name, value in page.attributes:
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:image/png;base64,")), tag
    assert not re.search(r"url\((?!#)|@import|<script[^>]|fetch\(", text)
    names = [v for _, name, v in page.attributes if name == "id"]
    assert len(set(names)) == len(names)
    found = " ".join(page.texts)
    assert "not whether trainings with other seeds would" in found
    # How the runs were trained: what tells recipes of one name apart.
    for smoothing in (0.1, 0.3):
        name = f"transformer_tiny.digits (label_smoothing={smoothing})"
        assert name in page.texts
    assert "▁" not in found
    (row,) = json.loads((runs / "first" / "scores.json").read_text())[
        "evaluations"
    ]
    assert f"{row['scores']['bleu']['value']:.2f} ± " in found


@pytest.mark.thorough
def test_a_report_is_made_of_a_trained_model(deepnmt, tmp_path, monkeypatch):
    # What is inside of models does not depend on where they are.
    module = importlib.import_module("keras_deepnmt.analysis.report")
    monkeypatch.setattr(module, "analyze", lambda run, **options: [])
    monkeypatch.chdir(tmp_path)
    Path("a.de").write_text("Wir sollen oft seltsam sein.\n", "utf-8")
    Path("a.en").write_text("We should be strange often.\n", "utf-8")
    done = deepnmt(
        *("report", "transformer_tiny.demo_de_en", "--resamples", 10),
        *("--source", "a.de", "--target", "a.en", "--no-compile"),
    )
    assert done.code == 0, done.err
    assert done.out == "report.html\n"
    page = Path("report.html").read_text("utf-8")
    assert "We should be strange often." in page


def test_a_report_refuses_a_tag_without_a_text(refused, runs):
    for words in (["report", "first"], ["analyze", "first"]):
        error = refused(*words, "--tag", "<2de>")
        assert "--tag needs --source" in error


@pytest.mark.parametrize("verb", ["analyze", "report"])
def test_a_text_has_no_split(refused, verb):
    words = ["--source", "a", "--target", "b", "--split", "valid"]
    error = refused(verb, "first", *words)
    assert "--split valid cannot be given with --source" in error


@pytest.mark.parametrize(
    ("verb", "words", "said"),
    [
        ("analyze", [], "needs a model with role interaction"),
        ("report", [], "needs a model with role interaction"),
        ("analyze", ["--what", "lens"], "needs the analysis roles"),
    ],
)
def test_options_of_roles_are_refused_without_roles(
    refused, write_file, verb, words, said
):
    text = write_file("text", "Wir sollen oft seltsam sein.\n")
    words = [*words, "--source", text, "--target", text, "--token", "die"]
    error = refused(verb, "transformer_tiny.demo_de_en", *words, "--quiet")
    assert f"--token {said}" in error


def test_one_of_several_models_may_have_roles():
    with_roles, without = (
        create_model(
            *(preset, 9, 9),
            **{"hidden_dim": 16, "intermediate_dim": 16, "num_heads": 2},
            **{"num_encoder_layers": 1, "num_decoder_layers": 1},
        )
        for preset in ("role_interaction_softmax_tiny", "transformer_tiny")
    )
    options = Namespace(token="der", role_labels="labels.jsonl")
    check_roles(options, iter([without, with_roles]))
    with pytest.raises(UserError, match="--role-labels needs a model with"):
        check_roles(options, iter([without]))
    check_roles(Namespace(token="der", role_labels=None), [without])
