"""What must be true of what a report says of its text.

* the text is named: a split of the run's data, or the one that was given
* the number of sentences that were looked at is true for each model
* groups of source lengths say what they count
* losses that are not finite reach nothing
"""

import importlib
import math
from types import SimpleNamespace

import pytest

from keras_deepnmt.analysis import (
    Table,
    report,
    score_figures,
    training_figures,
)
from keras_deepnmt.runs.seed_groups import SeedGroup
from keras_deepnmt.runs.test_translations import TestTranslations

TABLE = Table(name="t", title="T", caption="C.", header=["a"], rows=[])
module = importlib.import_module("keras_deepnmt.analysis.report")


@pytest.fixture
def make_report(monkeypatch):
    """Makes the report of runs that have so many sentences that fit."""
    pytest.importorskip("matplotlib")

    def make_report(numbers, **options):
        stages = []
        text = TestTranslations(
            sources=None,
            references=["a"],
            systems={name: ["a"] for name in numbers},
            scores={},
            scoring={"tokenize": "none", "lowercase": False},
            recipes=[SeedGroup(name, {name: 1}) for name in numbers],
        )
        recipe = SimpleNamespace(data=SimpleNamespace(source_language=None))
        folder = SimpleNamespace(recipe=lambda: recipe, history=list)
        for name, stand_in in {
            "RunFolder": SimpleNamespace(find=lambda run_dir: folder),
            "translate_runs": lambda run_dirs, **options: text,
            "_runs": lambda labels, recipes: TABLE,
            "score_figures": lambda text: [],
            "comparison_figures": lambda text, num_resamples: [],
            "training_figures": lambda training: [],
            "AnalyzedRun": lambda run_dir, **options: SimpleNamespace(
                sources=["a"] * numbers[run_dir]
            ),
            "analyze": lambda run, **options: [TABLE],
        }.items():
            monkeypatch.setattr(module, name, stand_in)
        return report(list(numbers), on_stage=stages.append, **options), stages

    return make_report


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({}, "the test set"),
        ({"split": "valid"}, "the validation set"),
        (
            {"split": "test", "source_file": "a", "target_file": "b"},
            "the given text",
        ),
        ({"source_file": None, "target_file": None}, "the test set"),
    ],
)
def test_the_text_of_a_report_is_named(make_report, options, where):
    page, stages = make_report({"one": 1_200}, **options)
    assert stages[0] == f"Translating {where}"
    assert f">Sentences of {where}: 1,200.<" in page
    assert page.count(" set") == ("set" in where)


def test_models_with_other_sentences_have_their_numbers(make_report):
    page, _ = make_report({"one": 3, "two": 3})
    assert "Sentences of the test set: 3.<" in page
    page, _ = make_report({"one": 3, "two": 2})
    assert "Sentences of the test set: one 3, two 2.<" in page


def test_a_loss_that_is_not_finite_reaches_nothing(monkeypatch):
    logs = {
        "one": [math.nan, 3.0, 2.0, math.nan],
        "two": [4.0, math.inf, 2.5],
        "never": [math.nan, math.inf],
    }

    def find(name):
        rows = [
            (1, {"step": step, "val_loss": loss})
            for step, loss in enumerate(logs[name], start=1)
        ]
        return SimpleNamespace(history=lambda: rows)

    comparisons = importlib.import_module("keras_deepnmt.analysis.comparisons")
    monkeypatch.setattr(comparisons, "RunFolder", SimpleNamespace(find=find))
    table = training_figures(list(logs))[-1]
    assert table.title == "Updates to a validation loss of 2.500"
    assert table.rows == [["one", "3", "2.000"], ["two", "3", "2.500"]]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("ein Hund", "source words"),
        ("一只狗", "source words (each letter of Chinese counts)"),
    ],
)
def test_groups_of_source_lengths_say_what_they_count(source, expected):
    text = TestTranslations(
        sources=[source],
        references=["a dog"],
        systems={"one": ["a dog"]},
        scores={"one": {}},
        scoring={"tokenize": "13a", "lowercase": False},
    )
    *_, groups = score_figures(text)
    assert groups.name == "bleu_by_length"
    assert groups.x_label == expected
