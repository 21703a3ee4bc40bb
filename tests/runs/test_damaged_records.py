"""What must be true of the records of runs and sweeps that are damaged.

* JSON of another form is one line: the file, the key, the rule, the remedy
* so is what was cut
* the remedy works
"""

import json
import re
import shutil

import pytest

from keras_deepnmt.analysis import report
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.sentence_budget import SentenceBudget
from keras_deepnmt.recipes.training_schema import DivergenceRecipe
from keras_deepnmt.runs.rollback import Rollbacks
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.scores_file import read_scores
from keras_deepnmt.runs.sweep import sweep
from keras_deepnmt.training.progress import EpochCounts
from keras_deepnmt.translator.loading import read_run

pytestmark = pytest.mark.thorough(each_commit=True)

DELETE = "Delete it"
COPY = "Copy the folder again"


@pytest.fixture
def read(tmp_path, recipe_file):
    """Reads one of the files in a folder."""
    run = RunFolder(tmp_path)
    readers = {
        "divergence.json": lambda: Rollbacks(run, DivergenceRecipe()),
        "epoch_counts.json": lambda: EpochCounts(run.epoch_counts_file),
        "recipe.yaml": run.recipe,
        "run.json": run.read_summary,
        "scores.json": lambda: read_scores(run.scores_file),
        "sweep.json": lambda: sweep(recipe_file, tmp_path, seeds=[1]),
        "translator.json": lambda: read_run(tmp_path),
        "validation.json": lambda: SentenceBudget(
            0.1, 9, 1, run.validation_file
        ),
    }

    def read(name, content):
        (tmp_path / name).write_text(content)
        return readers[name]()

    return read


def test_a_misspelt_key_of_scoring_is_named(tmp_path):
    run = RunFolder(tmp_path)
    assert run.scoring_of({"evaluation": {"lowercase": True}}).lowercase
    rule = r"run.json: `evaluation.tokenkze` is unknown; did you mean"
    with pytest.raises(UserError, match=rule):
        run.scoring_of({"evaluation": {"tokenkze": "zh"}})
    rule = r"`evaluation.lowercase` must be .*Received: 'no'"
    with pytest.raises(UserError, match=rule):
        run.scoring_of({"evaluation": {"lowercase": "no"}})


@pytest.mark.parametrize(
    ("name", "content", "rule", "remedy"),
    [
        ("epoch_counts.json", {"now": {}}, r"`now.* must match", DELETE),
        (
            "epoch_counts.json",
            {"7": {"tokens": "9"}},
            "`7.tokens` must be a number. Received: '9'",
            DELETE,
        ),
        ("validation.json", [], "must be an object", DELETE),
        (
            "validation.json",
            {"sentences": 0},
            "`sentences` must be greater than or equal to 1",
            DELETE,
        ),
        (
            "validation.json",
            {"seconds_per_update": "1"},
            "`seconds_per_update` must be a number",
            DELETE,
        ),
        ("divergence.json", {}, "lacks rollbacks, states", DELETE),
        (
            "divergence.json",
            {"rollbacks": [{"rate_factor": 7}], "states": {}},
            "`rollbacks.0.rate_factor` must be less than 1. Received: 7",
            DELETE,
        ),
        (
            "divergence.json",
            {"rollbacks": [], "states": {"1": [2.5]}},
            "`states.1` must have no values, or a mean and a number",
            DELETE,
        ),
        ("sweep.json", {"runs": []}, "`runs` must be an object", DELETE),
        (
            "sweep.json",
            {"runs": {"seed=1": {"scores": {}}}},
            "lacks runs.seed=1.weights_sha256",
            DELETE,
        ),
        (
            "scores.json",
            {"evaluations": [{"test_set": {"name": "test"}}]},
            r"lacks .*evaluations.0.test_set.sentences\.",
            "delete it",
        ),
        ("run.json", {"preset": 7}, "lacks overrides", COPY),
        ("translator.json", {"preset": 7}, "lacks overrides", COPY),
        ("recipe.yaml", {"steps": 7}, "`steps`", "--restart"),
    ],
)
def test_another_form_is_a_line_with_file_key_rule_and_remedy(
    read, name, content, rule, remedy
):
    text = json.dumps(content)
    with pytest.raises(
        UserError, match=rf"(?s)/{name}.*{rule}.*{remedy}"
    ) as info:
        read(name, text)
    # A recipe has a line for each mistake.
    assert name == "recipe.yaml" or "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("divergence.json", DELETE),
        ("epoch_counts.json", DELETE),
        ("recipe.yaml", "by `--restart`"),
        ("run.json", "run the same `deepnmt train` again"),
        ("scores.json", "delete it"),
        ("sweep.json", DELETE),
        ("translator.json", COPY),
        ("validation.json", DELETE),
    ],
)
@pytest.mark.parametrize("content", ['{"a": [', "[" * 200 + "]" * 200])
def test_what_was_cut_or_is_too_deep_has_a_remedy(read, name, remedy, content):
    with pytest.raises(UserError, match=f"/{name}.*{remedy}") as info:
        read(name, content)
    assert "\n" not in str(info.value)


def test_what_training_has_added_to_a_recipe_is_checked(read, recipe_file):
    added = {"corpora": [{"split": "train", "name": "a"}]}
    text = f"{recipe_file.read_text()}\nresolved: {json.dumps(added)}\n"
    with pytest.raises(
        UserError,
        match="/recipe.yaml: lacks resolved.corpora.0.pairs. .*--restart",
    ):
        read("recipe.yaml", text)


@pytest.mark.parametrize("name", ["run.json", "log.csv", "validation.json"])
def test_a_folder_in_the_place_of_a_file_is_refused_before_training(
    train_in, finished_run, tmp_path, name
):
    run_dir = shutil.copytree(finished_run, tmp_path / "run")
    (run_dir / name).unlink()
    (run_dir / name).mkdir()
    (run_dir / "model" / "metadata.json").unlink()
    with pytest.raises(UserError, match=f"/{name}: is a folder, .*Rename"):
        train_in()
    # The model would have been made anew.
    assert not (run_dir / "model" / "metadata.json").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("recipe.yaml", "recipe.yaml, line 3: not YAML"),
        ("log.csv", "log.csv: damaged. Copy it again"),
    ],
)
def test_a_report_reads_the_records_before_it_translates(
    finished_run, tmp_path, name, said
):
    run_dir = shutil.copytree(finished_run, tmp_path / "run")
    (run_dir / name).write_text("epoch: [\n1,2\n")
    with pytest.raises(UserError, match=said):
        report([run_dir])
    assert not (run_dir / "scores.json").exists()


def test_a_choice_of_sentences_that_lacks_a_value_is_made_anew(read):
    budget = read("validation.json", '{"of_sentences": 70}')
    assert len(budget.choose(70, seconds_of=None)) == 70


@pytest.mark.thorough
def test_a_damaged_run_json_is_made_anew(train_in, finished_run, tmp_path):
    run = RunFolder(shutil.copytree(finished_run, tmp_path / "run"))
    whole = run.read_summary()
    run.run_file.write_text(run.run_file.read_text()[:99])
    made = train_in()
    assert made["weights_sha256"] == whole["weights_sha256"]
    assert run.read_summary() == made


@pytest.mark.thorough
def test_a_run_with_a_damaged_recipe_begins_again(
    train_in, finished_run, tmp_path
):
    run = RunFolder(shutil.copytree(finished_run, tmp_path / "run"))
    run.recipe_file.write_text("training: [")
    with pytest.raises(UserError, match=re.escape("by `--restart`")):
        train_in()
    assert run.checkpoints().steps()
    train_in({"training.steps": 1, "data.valid": None}, restart=True)
    assert run.read_summary()["steps"] == run.recipe().training.steps == 1
