"""What must be true of a run whose recipe leaves `evaluation.tokenize` out.

* it follows the target language, before anything is prepared
* without one it follows the script of the validation text, and that is said
* `evaluate` and `tune` say it where a run has none
* it is recorded, and stays the same when the run is resumed
"""

import dataclasses
from types import SimpleNamespace

import pytest

from keras_deepnmt.commands import tune
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe, save_recipe
from keras_deepnmt.recipes.schema import EvaluationRecipe
from keras_deepnmt.runs import evaluate as evaluating
from keras_deepnmt.runs import start as module
from keras_deepnmt.runs.changes import find_changes
from keras_deepnmt.runs.objective_options import check_objective
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.start import join_run, resolve_run, settle_recipe

OPEN = {"evaluation.tokenize": None}
TEXTS = {
    "zh": ["今天早上，我的老老师画了一本旧书。"],
    "13a": ["This morning my old teacher painted an old book."],
    "ja-mecab": ["これは古い本です。"],
}


@pytest.fixture
def settle(recipe_file, tmp_path):
    def run(**changes):
        recipe = load_recipe(recipe_file, OPEN | changes)
        return settle_recipe(recipe, RunFolder(tmp_path / "run"))

    return run


def resolved(recipe, tokenize, monkeypatch, said):
    """Resolves a run with a validation text, without preparing anything."""
    data = SimpleNamespace(
        splits=("train", "valid"), texts=lambda split: ([], TEXTS[tokenize])
    )
    folder = SimpleNamespace(started=lambda: None)
    monkeypatch.setattr(module, "find_batch", lambda *given: None)
    monkeypatch.setattr(module, "_resolve", lambda *given: {})
    return resolve_run(recipe, folder, data, say=said.append)


@pytest.mark.parametrize(
    ("code", "tokenize"),
    [("zh-CN", "zh"), ("de", "13a"), ("ja", "ja-mecab"), ("km", "flores200")],
)
def test_the_target_language_decides(settle, code, tokenize):
    settled = settle(**{"data.target_language": code})
    assert settled.evaluation.tokenize == tokenize
    given = {"evaluation.tokenize": "char", "data.target_language": code}
    assert settle(**given).evaluation.tokenize == "char"


def test_what_cannot_be_used_is_refused_before_anything_is_prepared(settle):
    pytest.importorskip("sacrebleu")
    settled = settle(**{"data.target_language": "ja"})
    try:
        import ipadic  # noqa: F401
    except ImportError:
        with pytest.raises(UserError, match=r"keras_deepnmt\[ja\]"):
            check_objective(settled)


@pytest.mark.parametrize("tokenize", ["zh", "13a"])
def test_the_script_of_the_validation_text_decides(
    settle, tokenize, monkeypatch
):
    said = []
    recipe = settle()
    assert recipe.evaluation.tokenize is None
    run = resolved(recipe, tokenize, monkeypatch, said)
    assert run.recipe.evaluation.tokenize == tokenize
    assert run.recorded.evaluation.tokenize == tokenize
    assert len(said) == (tokenize == "zh")
    for line in said:
        assert "are in Chinese, so that BLEU has `tokenize: zh`" in line


def test_a_tokenizer_that_needs_spaces_is_warned_of(
    settle, monkeypatch, caplog
):
    for tokenize, texts, number in (("13a", "13a", 0), ("13a", "zh", 1)):
        recipe = settle(**{"evaluation.tokenize": tokenize})
        run = resolved(recipe, texts, monkeypatch, [])
        assert run.recipe.evaluation.tokenize == "13a"
        assert len(caplog.messages) == number
    assert "takes a sentence of Chinese for one word; use zh" in caplog.text


def test_text_without_a_held_out_split_leaves_it_open(settle, monkeypatch):
    data = SimpleNamespace(splits=("train",))
    monkeypatch.setattr(module, "PreparedData", lambda folder: data)
    folder = SimpleNamespace(started=lambda: None, data_dir=None)
    run = join_run(settle(), folder, None, restart=False)
    assert run.recipe.evaluation.tokenize is None


def test_a_resumed_run_keeps_its_tokenizer(settle, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.directory.mkdir()
    chinese = {"data.target_language": "zh"}
    recipe = settle(**chinese)
    # As a run of an earlier version recorded it.
    earlier = dataclasses.replace(recipe.evaluation, tokenize="13a")
    recipe = dataclasses.replace(recipe, evaluation=earlier)
    save_recipe(recipe, folder.recipe_file, {})
    again = settle(**chinese)
    assert again.evaluation.tokenize == "13a"
    assert not find_changes(folder.recipe(), again)
    restarted = settle_recipe(
        load_recipe(folder.recipe_file, OPEN), folder, restart=True
    )
    assert restarted.evaluation.tokenize == "zh"


@pytest.mark.parametrize("code", [None, "zh"])
def test_a_script_that_decides_is_told(
    finished_run, tmp_path, monkeypatch, caplog, code
):
    file = tmp_path / "text"
    file.write_text(f"{TEXTS['zh'][0]}\n", encoding="utf-8")
    scoring = EvaluationRecipe(tokenize=None)
    monkeypatch.setattr(RunFolder, "scoring_of", lambda *given: scoring)
    monkeypatch.setattr(evaluating, "_target_language", lambda run: code)
    evaluation = evaluating.Evaluation(
        finished_run, source_file=file, target_file=file
    )
    assert evaluation.scoring["tokenize"] == "zh"
    told = "the script is Chinese; BLEU has tokenize=zh."
    assert [told in line for line in caplog.messages] == [True] * (not code)


def test_tuning_tells_the_script_that_decides(monkeypatch):
    options = SimpleNamespace(
        runs=["run"], tokenize=None, lowercase=None, metric="bleu", target="t"
    )
    said = []
    for tokenize in (None, "zh"):
        scoring = EvaluationRecipe(tokenize=tokenize)
        monkeypatch.setattr(tune, "scoring_of", lambda run, s=scoring: s)
        found = tune._scoring(options, TEXTS["zh"], said.append)
        assert found["tokenize"] == "zh"
    assert said == [
        "t: the script is Chinese; BLEU has tokenize=zh. Another --tokenize "
        "changes it."
    ]


@pytest.mark.parametrize(
    ("of_run", "tokenize"), [("none", "none"), ("13a", "zh")]
)
def test_one_direction_of_a_test_set_has_its_tokenizer(
    finished_run, monkeypatch, of_run, tokenize
):
    """Unless the recipe has one of its own."""
    corpora = [
        {"split": "test", "rows": [0, 2], "direction": ["zh", "en"]},
        {"split": "test", "rows": [2, 3], "direction": ["en", "zh"]},
    ]
    texts = ["a", "b", "c"], ["x", "y", *TEXTS["zh"]]
    data = SimpleNamespace(
        manifest={"corpora": corpora}, texts=lambda split: texts
    )
    scoring = EvaluationRecipe(tokenize=of_run)
    monkeypatch.setattr(RunFolder, "scoring_of", lambda *given: scoring)
    monkeypatch.setattr(evaluating, "open_data", lambda *given: data)
    monkeypatch.setattr(evaluating, "_target_language", lambda run: "en")
    evaluation = evaluating.Evaluation(finished_run, target_language="zh")
    assert evaluation.texts == (["c"], TEXTS["zh"])
    assert evaluation.scoring["tokenize"] == tokenize
    english = evaluating.Evaluation(finished_run, target_language="en")
    assert english.texts[0] == ["a", "b"]
    assert english.scoring["tokenize"] == of_run
    with pytest.raises(UserError, match="are: en, zh. Received: fr"):
        evaluating.Evaluation(finished_run, target_language="fr")
