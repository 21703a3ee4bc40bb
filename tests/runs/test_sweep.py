"""Sweeps: their runs, what is refused before training, and whole ones."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from broken_runs import checkpoint
from digit_run import environment
from forked_processes import ForkedProcess

from keras_deepnmt.cli import main
from keras_deepnmt.errors import UserError
from keras_deepnmt.runs import sweep as sweep_module
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.scores_file import add_scores
from keras_deepnmt.runs.sweep import sweep, sweep_runs

pytestmark = pytest.mark.thorough

DROPOUT = "model.overrides.dropout"


def names(grid, seeds=(1,)):
    return [run.name for run in sweep_runs(grid, seeds)]


def test_each_combination_of_values_has_a_run_with_each_seed():
    grid = {DROPOUT: [0.1, 0.3], "training.steps": [10, 20]}
    runs = sweep_runs(grid, [4, 5])
    assert len(runs) == len({run.name for run in runs}) == 8
    assert runs[1].name == "dropout=0.1,steps=10,seed=5"
    assert runs[1].point == "dropout=0.1,steps=10"
    assert names({}, [1, 2]) == ["seed=1", "seed=2"]
    assert runs[1].overrides == {DROPOUT: 0.1, "training.steps": 10, "seed": 5}


def test_names_of_folders_tell_keys_and_values_apart():
    assert names({"a.peak": [1], "b.peak": [2]}) == ["a.peak=1,b.peak=2,seed=1"]
    assert names({"a": [{"B": {"c": 1}}, None]}) == [
        "a=B_c_1,seed=1",
        "a=null,seed=1",
    ]
    # Only signs that no file name has tell these apart.
    first, second = names({"a": ["x/y", "x:y"]})
    assert first == "a=x_y,seed=1" and second.startswith("a=x_y,")
    assert names({"a": ["x/y", "x:y"]}) == [first, second]


@pytest.mark.parametrize(
    ("grid", "seeds", "named"),
    [
        ({DROPOUT: []}, [1], "none"),
        ({DROPOUT: [0.1, 0.1]}, [1], "0.1, 0.1"),
        ({}, [2, 2], "seeds"),
        ({"seed": [1]}, [1], "by themselves"),
    ],
)
def test_what_is_not_a_grid_is_refused(grid, seeds, named):
    with pytest.raises(UserError, match=named):
        sweep_runs(grid, seeds)


@pytest.fixture
def started(monkeypatch):
    """The commands that were started, as forks of one that has imported all."""
    commands = []

    def start(words, *, start_new_session, env, **streams):
        assert words[:2] == ["-m", "keras_deepnmt"]
        assert start_new_session
        commands.append(words[2])
        env, streams["stdin"] = environment(**env), subprocess.DEVNULL
        return ForkedProcess(words, env=env, **streams)

    monkeypatch.setattr(sweep_module, "start_python", start)
    return commands


def test_all_recipes_are_checked_before_the_first_one_trains(
    recipe_file, tmp_path, started
):
    folder = tmp_path / "sweep"
    with pytest.raises(UserError, match="steps"):
        sweep(recipe_file, folder, grid={"training.steps": [10, -1]})
    with pytest.raises(UserError, match="dropout.*'much'"):
        sweep(recipe_file, folder, grid={DROPOUT: ["much"]}, seeds=[1, 2])
    assert started == ["recipe"] and not folder.exists()


def test_devices_are_divided_among_the_processes(monkeypatch):
    shares = sweep_module._shares_of_devices
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    assert shares(2) == ["0,2", "1"]
    assert shares(4) == [None] * 4
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert shares(1) == [None]


def test_a_sweep_keeps_what_is_finished_and_grows(
    recipe_file, prepared_dir, tmp_path, started
):
    folder, said = tmp_path / "sweep", []

    def run(**options):
        started.clear()
        options = {"prepared_dir": prepared_dir} | options
        return sweep(
            recipe_file,
            folder,
            grid={DROPOUT: [0.3]},
            say=said.append,
            **options,
        )

    (one,) = run(seeds=[7])
    assert started == ["recipe", "train", "evaluate"] and one.failure is None
    assert set(one.scores["test"]) == {"bleu", "chrf", "ter"}
    again, other = run(seeds=[7, 8])
    assert started == ["recipe", "train", "evaluate"] and again == one
    assert other.run.seed == 8 and "seed=8: valid bleu" in said[-1]
    differ = [
        (checkpoint(result.run_dir, 6)[name] != value).any()
        for result in [other]
        for name, value in checkpoint(one.run_dir, 6).items()
    ]
    assert any(differ)


def test_a_run_that_fails_and_an_interrupt_leave_the_others(
    finished_run, recipe_file, prepared_dir, tmp_path, monkeypatch, capfd
):
    """The finished run is one of the sweep, the processes are made up."""
    folder = tmp_path / "sweep"
    shutil.copytree(finished_run, folder / "dropout=0.3,seed=7")
    options = {"grid": {DROPOUT: [0.3]}, "prepared_dir": prepared_dir}
    row = {"test_set": {"name": "test", "sentences": 7}}
    row |= {"decoding": {}, "evaluation": {}}
    summary = RunFolder(finished_run).read_summary()
    row["weights_sha256"] = summary["weights_sha256"]
    row["scores"] = {"bleu": {"value": 12.5, "signature": "tok:13a"}}
    reached = []

    def process(self, words, log, devices):
        reached.append(words[0])
        if words[0] == "evaluate":  # as the folder may have been moved
            assert words[2:] == ["--prepared", prepared_dir]
        if words[0] == "train":
            return "no space left"
        if words[0] == "evaluate":
            add_scores(words[1] / "scores.json", row)
        return None

    monkeypatch.setattr(sweep_module._Sweep, "_process", process)
    bad, good = sweep(recipe_file, folder, seeds=[1, 7], **options)
    assert bad.failure == "no space left" and not bad.scores
    assert good.failure is None and good.scores["test"] == {"bleu": 12.5}
    assert reached == ["recipe", "train", "evaluate"]
    # Recorded, so not evaluated again.
    assert sweep(recipe_file, folder, seeds=[7], **options) == [good]
    assert len(reached) == 3
    # Other translations of the same weights are not those that were scored.
    file = folder / "dropout=0.3,seed=7" / "run.json"
    made = json.loads(file.read_text())
    for name, value in (("num_beams", 1), ("num_beams", 2)):
        made["decoding"][name] = value
        file.write_text(json.dumps(made))
        sweep(recipe_file, folder, seeds=[7], **options)
        assert reached.pop() == "evaluate" and len(reached) == 3
    words = ["sweep", recipe_file, "--output", folder, "--grid"]
    words += [f"{DROPOUT}=0.3", "--seeds", "1,7", "--prepared", prepared_dir]
    assert main([str(word) for word in words]) == 2
    printed = capfd.readouterr()
    line = "dropout=0.3\ttest bleu\t7\t12.50\t\t\thigher"
    assert line in printed.out.splitlines()
    assert printed.err.endswith(
        "deepnmt sweep: error: dropout=0.3,seed=1 failed: no space left\n"
    )

    def interrupted(self, words, log, devices):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep_module._Sweep, "_process", interrupted)
    with pytest.raises(KeyboardInterrupt, match="keeps what is finished"):
        sweep(recipe_file, folder, seeds=[2, 3], **options)
    # A row of other weights is not that of the run.
    (folder / "sweep.json").unlink()
    monkeypatch.setattr(sweep_module._Sweep, "_process", process)
    (folder / "dropout=0.3,seed=7" / "scores.json").unlink()
    row["weights_sha256"] = "other"
    (bad,) = sweep(recipe_file, folder, seeds=[7], **options)
    assert "scores.json: cannot be written" in bad.failure
    # With another recipe a finished run is not one of this sweep.
    with pytest.raises(UserError, match="hidden_dim"):
        sweep(
            recipe_file,
            folder,
            seeds=[7],
            overrides={"model.overrides.hidden_dim": 16},
            **options,
        )
    # Nor with other data, however they are given.
    other = tmp_path / "other"
    shutil.copytree(prepared_dir, other)
    manifest = other / "manifest.json"
    manifest.write_text(f"{manifest.read_text()}\n")
    with pytest.raises(UserError, match="other prepared data"):
        sweep(
            recipe_file, folder, seeds=[7], **options | {"prepared_dir": other}
        )
    with pytest.raises(UserError, match="`data.vocabulary_size` is"):
        sweep(
            recipe_file,
            folder,
            seeds=[7],
            grid=options["grid"],
            overrides={"data.vocabulary_size": 99},
        )


def test_a_run_is_evaluated_on_the_data_of_its_sweep(
    finished_run, recipe_file, tmp_path, monkeypatch
):
    """After both were moved, too."""
    folder, asked = tmp_path / "sweep", []
    shutil.copytree(finished_run, folder / "dropout=0.3,seed=7")

    def process(self, words, log, devices):
        asked.append(words)
        return "stopped"

    monkeypatch.setattr(sweep_module._Sweep, "_process", process)
    monkeypatch.setattr(
        sweep_module, "prepare_corpus", lambda _, path, **__: path.mkdir()
    )
    monkeypatch.setattr(sweep_module._Sweep, "check_models", lambda *_: None)
    sweep(recipe_file, folder, grid={DROPOUT: [0.3]}, seeds=[7, 8])
    sweep(recipe_file, folder, grid={DROPOUT: [0.3]}, seeds=[7])
    (prepared,) = folder.glob("prepared-*")
    assert [words[0] for words in asked] == ["evaluate", "train", "evaluate"]
    for words in asked:
        assert words[words.index("--prepared") + 1] == prepared


# Slow: needs two packages, which are no dependency of anything else, and which
# use deprecated functions of Python.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_examples_with_search_libraries_run(
    recipe_file, prepared_dir, tmp_path, monkeypatch
):
    for library in ("optuna", "keras_tuner"):
        pytest.importorskip(library)
    page = Path(__file__).parents[2] / "docs" / "sweeps.md"
    examples = re.findall(r"^```py\n(.*?)^```", page.read_text(), re.M | re.S)
    assert len(examples) == 2
    monkeypatch.chdir(tmp_path)
    shutil.copy(recipe_file, "recipe.yaml")
    shutil.copytree(prepared_dir, "prepared")
    for example in examples:
        exec(compile(example, page.name, "exec"), {})
