"""The quality table: what is trained, by whom, how often, and what is added.

A stand-in for `deepnmt` writes the files of a run; the claims are those of real
processes.
"""

import fcntl
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from digit_run import environment

from benchmarks.quality import table
from benchmarks.quality.rows import corpora
from benchmarks.quality.rows.claim import claim_owner, claimed
from benchmarks.quality.rows.row_file import add_row, compare_with_plain
from benchmarks.quality.rows.row_folder import RowFolder, deepnmt
from benchmarks.quality.rows.row_list import (
    TableRow,
    presets_of,
    recipe_sha256,
    table_rows,
)
from benchmarks.quality.rows.sentence_counts import (
    count_sentences,
    counts_file,
    read_counts,
    write_counts,
)
from benchmarks.shared.result_rows import read_rows, write_rows
from keras_deepnmt import list_models
from keras_deepnmt.data import CorpusOptions, PrepareOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import corpus_scores
from keras_deepnmt.files import lines_sha256
from keras_deepnmt.recipes import list_recipes
from keras_deepnmt.translator import Translator

REPOSITORY = Path(__file__).parents[2]
REFERENCES = [
    f"the {color} {animal} sees the small {place} at night ."
    for color in ("red", "old", "tired", "clever")
    for animal in ("dog", "cat", "horse", "mouse", "tiger")
    for place in ("house", "garden", "lake")
]


class Deepnmt:
    """Writes what the commands of `deepnmt` would write.

    `dies_at` is the verb at which the process is killed, after half its work.
    """

    def __init__(self, translate=None):
        self.calls = []
        self.dies_at = None
        self.translate = translate or (lambda references: references)

    def __call__(self, arguments, claim=None):
        verb, *words = arguments
        places = [n for n, word in enumerate(words) if word.startswith("--")]
        options = {words[n]: words[n + 1] for n in places}
        run = Path(options.get("--run-dir", words[0]))
        self.calls.append((verb, run.parent.parent.name.split(".")[0]))
        run.mkdir(exist_ok=True)
        if self.dies_at == verb:
            self.dies_at = None
            raise KeyboardInterrupt
        getattr(self, f"_{verb}")(run, options)

    def _export(self, run, options):
        assert options == {"--format": "preset"}
        (run.parent / run.parent.parent.name).mkdir()

    def _train(self, run, options):
        summary = {
            "weights_sha256": "w",
            "steps": 4,
            "averaged_steps": [3, 4],
            "parameters": 11,
            "training": {
                "seconds": 90.0,
                "target_tokens": 500,
                "target_tokens_per_second": 5.5,
            },
            "valid": {"bleu": {"value": 31.25, "signature": "s"}},
            "device": {
                "processor": "p",
                "cores": 2,
                "accelerators": [],
                "backend": "tensorflow",
            },
            "versions": {
                "tensorflow": "2.0",
                "keras": "3.0",
                "sacrebleu": "2.6.0",
            },
            "commit": "0123456789abcdef+",
        }
        (run / "run.json").write_text(json.dumps(summary))

    def _evaluate(self, run, options):
        references = corpora.PreparedData(options["--prepared"]).texts("test")
        lines = self.translate(references[1])
        Path(options["--output"]).write_text("".join(f"{x}\n" for x in lines))
        scores = corpus_scores(lines, references[1])
        row = {
            "weights_sha256": "w",
            "test_set": {"name": "test", "sentences": len(lines)},
            "evaluation": {"tokenize": "13a", "lowercase": False},
            "decoding": {
                "num_beams": 4,
                "length_penalty": 0.6,
                "length_offset": 5.0,
            },
            "date": "2031-05-07T11:00:00+00:00",
            "scores": {
                name: {"value": score.value, "signature": score.signature}
                for name, score in scores.items()
            },
        }
        (run / "scores.json").write_text(json.dumps({"evaluations": [row]}))


@pytest.fixture(scope="module")
def prepared_folder(tmp_path_factory):
    """A work folder whose corpus is prepared."""
    folder = tmp_path_factory.mktemp("table")
    row = TableRow("demo", "transformer_tiny", None, 1)
    RowFolder(row, folder, "smoke").prepared()
    return folder


@pytest.fixture
def work_folder(prepared_folder, tmp_path):
    (tmp_path / "prepared").symlink_to(prepared_folder / "prepared")
    return tmp_path


def folder_of(work_folder, preset="transformer_tiny", seed=1, plain=None):
    row = TableRow("demo", preset, plain, seed)
    return RowFolder(row, work_folder, "smoke")


def measure(work_folder, folders, command, train=True):
    output = work_folder / "table.csv"
    failed = table.measure_missing(folders, output, train, command)
    return failed, read_rows(output)


def test_a_row_is_trained_and_scored_once(work_folder):
    command = Deepnmt()
    folders = [folder_of(work_folder, seed=seed) for seed in (1, 2)]
    failed, rows = measure(work_folder, folders, command)
    assert failed == []
    assert [verb for verb, _ in command.calls] == [
        *("train", "evaluate", "export"),
    ] * 2
    assert [row["seed"] for row in rows] == ["1", "2"]
    row = rows[0]
    expected = {
        "commit": "0123456789+",
        "device": "CPU",
        "backend_version": "2.0",
        "corpus": "demo",
        "preset": "transformer_tiny",
        "parameters": "11",
        "updates": "4",
        "target_tokens": "500",
        "training_minutes": "1.5",
        "valid_bleu": "31.25",
        "bleu": "100.0",
        "bleu_interval": "0.0",
        "sentences": "20",
        "num_beams": "4",
    }
    assert {name: row[name] for name in expected} == expected
    assert "bs:1000|seed:12345" in row["bleu_signature"]
    counts = read_counts(counts_file(work_folder / "table.csv", row))
    assert counts.shape == (20, 10)
    assert (counts[:, 0] == counts[:, -1]).all()
    measure(work_folder, folders, command)
    assert len(command.calls) == 6


@pytest.mark.parametrize("verb", ["train", "evaluate", "export"])
def test_a_killed_row_continues_in_its_run_folder(work_folder, verb):
    command = Deepnmt()
    command.dies_at = verb
    folder = folder_of(work_folder)
    with pytest.raises(KeyboardInterrupt):
        measure(work_folder, [folder], command)
    assert folder.state() == ("begun" if verb == "train" else "trained")
    _, rows = measure(work_folder, [folder_of(work_folder)], command)
    assert len(rows) == 1
    verbs = [verb for verb, _ in command.calls]
    # A model that is trained is only scored.
    done = dict.fromkeys(["train", "evaluate", "export"], 1) | {verb: 2}
    assert {name: verbs.count(name) for name in done} == done
    assert len(list((work_folder / "rows").glob("*/*/run"))) == 1


def test_a_trained_and_scored_run_whose_row_is_missing_runs_nothing(
    work_folder,
):
    command = Deepnmt()
    measure(work_folder, [folder_of(work_folder)], command)
    (work_folder / "table.csv").unlink()
    _, rows = measure(work_folder, [folder_of(work_folder)], command)
    assert len(rows) == 1
    assert len(command.calls) == 3


def test_without_training_only_finished_runs_are_added(work_folder):
    command = Deepnmt()
    folders = [folder_of(work_folder, seed=seed) for seed in (1, 2)]
    folders[0].run.mkdir(parents=True)
    command._train(folders[0].run, {})
    _, rows = measure(work_folder, folders, command, train=False)
    assert [row["seed"] for row in rows] == ["1"]


def test_translations_that_are_not_those_of_the_scores_are_refused(
    work_folder,
):
    command, folder = Deepnmt(), folder_of(work_folder)
    measure(work_folder, [folder], command)
    (work_folder / "table.csv").unlink()
    file = folder.directory / "test.translations"
    file.write_text(file.read_text().replace("e", "a"))
    (failed,), rows = measure(work_folder, [folder], command)
    assert "Delete test.translations" in failed
    assert rows == []


def test_a_row_that_fails_does_not_stop_the_others(work_folder):
    def command(arguments, claim):
        if "conv" in arguments[1]:
            raise subprocess.CalledProcessError(2, "deepnmt train")
        Deepnmt()(arguments, claim)

    folders = [
        folder_of(work_folder, "conv_seq2seq_tiny"),
        folder_of(work_folder),
    ]
    folders[0].recipe_sha256 = "as if there were a recipe"
    folders[0].recipe = folders[1].recipe
    failed, rows = measure(work_folder, folders, command)
    assert [row["preset"] for row in rows] == ["transformer_tiny"]
    assert "exit status 2" in failed[0]


def test_a_row_says_in_what_its_recipe_is_not_the_plain_models(work_folder):
    row = TableRow("multi30k", "conv_seq2seq_tiny", "transformer_tiny", 1)
    folder = RowFolder(row, work_folder, "smoke")
    _, (row,) = measure(work_folder, [folder], Deepnmt())
    keys = row["other_settings"].split("; ")
    assert "training.optimizer.name" in keys
    assert not {"name", "model.preset", "training.steps"} & set(keys)
    assert row["plain_recipe_sha256"] == recipe_sha256(
        "transformer_tiny.multi30k_en_de", folder._changes
    )


def test_a_row_says_that_its_model_has_other_dimensions(work_folder):
    row = TableRow(
        "demo", "multi_layer_attention_k2_tiny", "transformer_tiny", 1
    )
    settings = RowFolder(row, work_folder, "full")._other_settings()
    layers = [f"model.overrides.num_{x}_layers" for x in ("encoder", "decoder")]
    assert sorted(settings.split("; ")) == sorted(layers)


def test_a_row_without_a_recipe_is_only_listed(work_folder):
    folder = folder_of(work_folder, "no_such_preset")
    failed, rows = measure(work_folder, [folder], Deepnmt())
    assert failed == rows == []
    (line,) = table.describe_rows([folder], work_folder / "table.csv")
    assert line == "no_such_preset.demo_de_en, seed 1: no recipe"


def test_a_corpus_of_another_size_than_the_heading_says_is_refused(
    work_folder, monkeypatch
):
    folder = folder_of(work_folder)
    demo = table.CORPORA["demo"]
    few = type(demo)(demo.title, demo.recipes, most_pairs=100)
    monkeypatch.setitem(table.CORPORA, "demo", few)
    with pytest.raises(UserError, match="at most 100 training pairs"):
        folder.prepared()


def test_files_are_those_of_the_folder_of_corpora(monkeypatch, tmp_path):
    """For IWSLT14, of which a part is at hand."""
    options = RowFolder(
        TableRow("iwslt14", "dense_nmt_2_4l", None, 1), tmp_path
    )._changes
    options = PrepareOptions(
        train=[CorpusOptions(**options["data.train"][0])],
        test=CorpusOptions(**options["data.test"]),
    )
    monkeypatch.setenv("DEEPNMT_DATA", str(tmp_path))
    placed = corpora._with_files(options, tmp_path)
    assert placed.train[0].source == f"{tmp_path}/iwslt14-de-en/train.de"
    assert placed.test.target == f"{tmp_path}/iwslt14-de-en/valid.en"
    monkeypatch.setenv("DEEPNMT_DATA", str(tmp_path / "nothing"))
    with pytest.raises(UserError, match="Set DEEPNMT_DATA"):
        corpora._with_files(options, tmp_path)


def test_rows_with_the_same_data_share_one_prepared_corpus(
    work_folder, monkeypatch
):
    """Its text is not needed where it was copied to."""
    monkeypatch.setattr(corpora, "prepare_corpus", None)
    one = folder_of(work_folder, seed=1).prepared()
    other = folder_of(work_folder, seed=2).prepared()
    assert one.directory == other.directory
    assert len(list((work_folder / "prepared").iterdir())) == 1


CLAIM = """
import subprocess, sys, time
from pathlib import Path
from benchmarks.quality.rows.claim import claimed
with claimed(Path(sys.argv[1])) as claim:
    code = "import time; time.sleep(100)"
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        pass_fds=[claim],
    )
    print(child.pid, flush=True)
    time.sleep(100)
"""


def test_a_row_is_claimed_until_all_its_processes_have_ended(tmp_path):
    file = tmp_path / "row" / "claim"
    assert claim_owner(file) is None
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM, file],
        env=environment(),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(process.stdout.readline())
    with claimed(file) as claim:
        assert claim is None
    assert f"process {process.pid} on " in claim_owner(file)
    process.kill()
    process.wait()
    process.stdout.close()
    # The training process still runs.
    assert claim_owner(file) is not None
    os.kill(child, signal.SIGKILL)
    for _ in range(100):
        if claim_owner(file) is None:
            break
        time.sleep(0.05)
    with claimed(file) as claim:
        assert claim is not None


def test_a_listing_does_not_take_a_row_from_a_worker(tmp_path):
    file = tmp_path / "claim"
    file.touch()
    descriptor = os.open(file, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    threading.Timer(0.2, os.close, [descriptor]).start()
    with claimed(file) as claim:
        assert claim is not None


def test_a_row_that_another_process_trains_is_left_to_it(work_folder):
    command, folders = Deepnmt(), [folder_of(work_folder)]
    with folders[0].claimed():
        _, rows = measure(work_folder, folders, command)
        assert rows == command.calls == []
        (line,) = table.describe_rows(folders, work_folder / "table.csv")
        assert f"in progress: process {os.getpid()}" in line


COMMAND = """
import signal, sys, time
from pathlib import Path

def stop(*signal_and_frame):
    Path("stopped").touch()
    sys.exit(143)

if "fail" in sys.argv:
    sys.exit(2)
signal.signal(signal.SIGTERM, stop)
Path("started").touch()
time.sleep(100)
"""


@pytest.fixture
def command_folder(tmp_path, monkeypatch):
    """A folder with a stand-in for the program of the package."""
    (tmp_path / "keras_deepnmt").mkdir()
    (tmp_path / "keras_deepnmt" / "__init__.py").touch()
    (tmp_path / "keras_deepnmt" / "__main__.py").write_text(COMMAND)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_sigterm_lets_the_training_save_its_checkpoint(command_folder):
    def stop_when_started():
        while not (command_folder / "started").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    previous = signal.signal(signal.SIGTERM, table.stop)
    try:
        with ThreadPoolExecutor() as pool:
            pool.submit(stop_when_started)
            with pytest.raises(SystemExit, match="143"):
                deepnmt(["train"], PYTHONPATH=str(command_folder))
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert (command_folder / "stopped").exists()


def test_a_command_that_fails_is_told(command_folder):
    with pytest.raises(subprocess.CalledProcessError, match="deepnmt train"):
        deepnmt(["train", "fail"], PYTHONPATH=str(command_folder))


def test_rows_of_several_processes_are_added_once_each(tmp_path):
    file = tmp_path / "new" / "table.csv"

    def add(number):
        seed = number % 4
        return add_row(
            file, {"recipe": "r", "recipe_sha256": "s", "seed": seed}
        )

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(add, range(16)))
    assert sum(added) == 4
    assert sorted(row["seed"] for row in read_rows(file)) == list("0123")


def test_seeds_come_after_each_other_and_plain_models_first():
    rows = table_rows("multi30k", None, 2)
    presets = presets_of("multi30k")
    assert [row.seed for row in rows] == [1] * len(presets) + [2] * len(presets)
    assert [row.preset for row in rows[:2]] == [
        "transformer_tiny",
        "conv_seq2seq_tiny",
    ]
    chosen = table_rows("multi30k", ["everything_tiny"], 1)
    assert [str(row) for row in chosen] == [
        "everything_tiny.multi30k_en_de, seed 1"
    ]
    assert chosen[0].plain_recipe == "transformer_tiny.multi30k_en_de"


@pytest.mark.parametrize("corpus", ["multi30k", "demo", "iwslt14"])
def test_every_row_has_a_recipe_and_is_compared_with_a_row(corpus):
    plain_of = presets_of(corpus)
    assert set(plain_of) <= set(list_models())
    assert set(plain_of.values()) - {None} <= set(plain_of)
    if corpus == "demo":
        assert set(plain_of) == set(list_models("*_tiny*"))
    names = set(list_recipes())
    assert {row.recipe for row in table_rows(corpus, None, 1)} <= names


def test_a_recipe_that_says_something_else_is_another_row():
    name = "transformer_tiny.multi30k_en_de"
    sha256 = recipe_sha256(name, {})
    assert recipe_sha256(name, {"seed": 9}) == sha256
    # The default, and another value.
    assert recipe_sha256(name, {"training.r_drop": 0.0}) == sha256
    assert recipe_sha256(name, {"training.r_drop": 1.0}) != sha256
    assert recipe_sha256("nothing.multi30k_en_de", {}) is None


def worse(lines, number):
    """The same translations, of which some have a wrong word."""
    return [
        line.replace("small", "tall") if place < number else line
        for place, line in enumerate(lines)
    ]


def counts_of(lines, tokenize="none"):
    return count_sentences(lines, REFERENCES, tokenize, False)


def test_counts_are_read_as_they_were_written(tmp_path):
    counts = counts_of([*worse(REFERENCES, 9)[:-2], "", "the clever tiger"])
    write_counts(tmp_path / "new" / "counts.csv", counts)
    found = read_counts(tmp_path / "new" / "counts.csv")
    assert found.tolist() == counts.tolist()
    assert read_counts(tmp_path / "none.csv") is None


def csv_row(table, preset, lines, plain="", sha256="new"):
    """Writes the counts of a row, and returns the row."""
    row = {
        "corpus": "demo",
        "preset": preset,
        "recipe": f"{preset}.demo_de_en",
        "recipe_sha256": sha256,
        "seed": 1,
        "tokenize": "none",
        "lowercase": False,
        "plain": plain,
        "plain_recipe_sha256": "new" if plain else "",
        "translations_sha256": lines_sha256(lines)[:12],
        "plain_translations_sha256": "",
        "bleu_difference": "",
        "p_value": "",
    }
    write_counts(counts_file(table, row), counts_of(lines))
    return row


def test_rows_are_tested_once_the_plain_model_has_a_row(tmp_path):
    file = tmp_path / "table.csv"
    add_row(file, csv_row(file, "new", worse(REFERENCES, 5), "old"))
    compare_with_plain(file)
    assert read_rows(file)[0]["p_value"] == ""
    plain = csv_row(file, "old", worse(REFERENCES, 40))
    add_row(file, plain)
    counts = counts_file(file, plain).rename(tmp_path / "elsewhere")
    compare_with_plain(file)
    assert read_rows(file)[0]["p_value"] == ""
    counts.rename(counts_file(file, plain))
    compare_with_plain(file)
    new, old = read_rows(file)
    assert float(new["p_value"]) < 0.01
    assert float(new["bleu_difference"]) > 10
    assert old["p_value"] == ""
    # The plain model is trained again.
    again = csv_row(file, "old", worse(REFERENCES, 6))
    write_rows(file, [new, again])
    compare_with_plain(file)
    assert 0 < float(read_rows(file)[0]["bleu_difference"]) < 2


def test_rows_are_not_tested_against_another_version_of_the_plain_recipe(
    tmp_path,
):
    file = tmp_path / "table.csv"
    add_row(file, csv_row(file, "new", worse(REFERENCES, 5), "old"))
    other = csv_row(file, "old", worse(REFERENCES, 40), sha256="other")
    add_row(file, other)
    compare_with_plain(file)
    assert read_rows(file)[0]["p_value"] == ""


def test_rows_are_not_tested_on_another_test_set(tmp_path):
    file = tmp_path / "table.csv"
    new = csv_row(file, "new", worse(REFERENCES, 5), "old")
    add_row(file, new)
    add_row(file, csv_row(file, "old", worse(REFERENCES, 40)))
    counts = read_counts(counts_file(file, new))
    counts[3, -1] += 1
    write_counts(counts_file(file, new), counts)
    compare_with_plain(file)
    assert read_rows(file)[0]["p_value"] == ""


# Slow: a killed row continues in the test above, whichever step was killed.
@pytest.mark.slow
def test_a_killed_table_is_finished_by_the_same_command(tmp_path):
    command = [
        *(sys.executable, "benchmarks/quality/table.py", "--scale", "smoke"),
        *("--corpus", "demo", "--presets", "transformer_tiny"),
        *("--folder", tmp_path),
    ]
    options = {"cwd": REPOSITORY, "env": environment()}
    # With all its processes, as a machine that is switched off.
    process = subprocess.Popen(command, start_new_session=True, **options)
    while not list(tmp_path.glob("rows/*/*/run/checkpoints/*")):
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(tmp_path / "table.csv")
    assert row["updates"] == "4"
    assert "seed 1: BLEU" in done.stdout
    (card,) = tmp_path.glob("rows/*/*/transformer_tiny.demo_de_en/README.md")
    assert Translator.load(card.parent).translate(["Wir lachen."]) != []


@pytest.mark.slow
def test_a_row_is_trained_and_scored_on_jax_without_tensorflow(tmp_path):
    # Python imports this file first. A module that is `None` is not found.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "for name in ('tensorflow', 'tensorflow_text'):\n"
        "    sys.modules[name] = None\n"
    )
    done = subprocess.run(
        [
            *(sys.executable, "benchmarks/quality/table.py"),
            *("--scale", "smoke", "--backend", "jax", "--corpus", "demo"),
            *("--presets", "transformer_tiny", "--folder", tmp_path),
        ],
        cwd=REPOSITORY,
        env=environment(
            PYTHONPATH=os.pathsep.join([str(tmp_path), str(REPOSITORY)])
        ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    (row,) = read_rows(tmp_path / "table.csv")
    assert (row["backend"], row["updates"]) == ("jax", "4")
    assert row["backend_version"] == importlib.metadata.version("jax")
