"""Each wrong input gets one line and exit code 2; nothing half-written stays.

The command runs in this process; interrupts, full disks and closed pipes, which
need processes of their own, are in test_processes.py.
"""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from keras_deepnmt.exchange.engine_folders import EXPORT_FILE

PREPARE = ["prepare", "--quiet", "--output", "prepared"]
TEXT = ["--source", "train.source", "--target", "train.target"]
SMALL = ["--vocabulary-size", "25", "--drop-identical", "false"]


@pytest.fixture
def prepare_refused(refused, corpus):
    """Runs a prepare that must fail and leave nothing behind."""

    def run(*words):
        before = sorted(corpus.iterdir())
        line = refused(*PREPARE, *words)
        assert sorted(corpus.iterdir()) == before
        return line

    return run


@pytest.fixture
def recipe(digits, tmp_path, monkeypatch):
    """Writes a changed copy of the digits' recipe; its path."""
    monkeypatch.chdir(tmp_path)

    def write(old="", new=""):
        text = (digits / "digits.yaml").read_text()
        assert old in text
        (tmp_path / "changed.yaml").write_text(text.replace(old, new, 1))
        return "changed.yaml"

    return write


@pytest.fixture
def broken_run(digits, tmp_path):
    """A copy of the trained run, to be damaged."""
    return shutil.copytree(
        digits / "run",
        tmp_path / "broken",
        ignore=shutil.ignore_patterns(
            "checkpoints", "tensorboard", "scores.json", ".*"
        ),
    )


def test_prepare_says_where_it_wrote(deepnmt, corpus):
    done = deepnmt(*PREPARE, *TEXT, *SMALL)
    assert (done.code, done.out, done.err) == (0, "prepared\n", "")
    assert (corpus / "prepared" / "manifest.json").is_file()


def test_prepare_shows_counts_and_warns_of_leakage(deepnmt, corpus):
    valid = ["--valid-source", "train.source", "--valid-target", "train.target"]
    done = deepnmt(*PREPARE, *TEXT, *SMALL, *valid)
    assert "warning:" in done.err and "train" in done.err
    words = [word for word in PREPARE if word != "--quiet"]
    shutil.rmtree(corpus / "prepared")
    done = deepnmt(*words, *TEXT, *SMALL)
    for name in ("duplicate", "ratio", "kept", "source tokens"):
        assert name in done.err


def test_sides_of_different_length(prepare_refused, corpus):
    with open("train.target", "a") as file:
        file.write("1 2\n")
    line = prepare_refused(*TEXT, *SMALL)
    assert "400" in line and "401" in line and "train.source" in line


def test_invalid_utf8_names_file_and_line(prepare_refused, corpus):
    lines = (corpus / "train.target").read_bytes().splitlines()
    lines[6] = b"1 \xff"
    (corpus / "train.target").write_bytes(b"\n".join(lines))
    assert "train.target, line 7: not UTF-8" in prepare_refused(*TEXT, *SMALL)


def test_empty_file(prepare_refused, corpus):
    (corpus / "train.source").write_bytes(b"")
    assert "train.source: the file is empty" in prepare_refused(*TEXT, *SMALL)


def test_missing_file_names_the_nearest(prepare_refused):
    words = ["--source", "trian.source", "--target", "train.target"]
    line = prepare_refused(*words, *SMALL)
    assert "trian.source: no such file" in line
    assert 'Did you mean "train.source"?' in line


def test_vocabulary_larger_than_the_corpus_allows(prepare_refused):
    line = prepare_refused(*TEXT, "--vocabulary-size", "9000")
    assert "`vocabulary_size`" in line and "9000" in line


def test_the_advice_for_a_folder_prepared_otherwise_works(
    refused, deepnmt, corpus
):
    assert deepnmt(*PREPARE, *TEXT, *SMALL).code == 0
    line = refused(*PREPARE, *TEXT, *SMALL, "--max-length", "9")
    assert "`deepnmt prepare --overwrite`" in line
    words = [*PREPARE, *TEXT, *SMALL, "--max-length", "9", "--overwrite"]
    assert deepnmt(*words).code == 0
    manifest = json.loads((corpus / "prepared/manifest.json").read_text())
    assert manifest["options"]["max_length"] == 9


def test_contradictory_options(prepare_refused):
    assert "same number of files. Received: 1 and 0" in prepare_refused(
        *TEXT[:2]
    )
    assert "--corpus" in prepare_refused()
    assert "one number per corpus" in prepare_refused(
        *TEXT, "--weight", "1", "2"
    )
    line = prepare_refused(*TEXT, "--recipe", "x.yaml", "--max-length", "9")
    assert "--source, --target, --max-length" in line


@pytest.mark.parametrize(
    "words",
    [
        ("--max-tokens", "512"),  # the default
        ("--drop-duplicates", "true"),
        ("--valid-tag", ""),
        ("--filters", "Shorter"),
    ],
)
def test_a_recipe_allows_no_option_of_the_data(prepare_refused, words):
    line = prepare_refused("--recipe", "x.yaml", *words)
    assert f"Received: {words[0]}. Change the recipe's" in line


def test_a_recipe_alone_has_no_option_of_the_data(prepare_refused):
    line = prepare_refused("--recipe", "x.yaml")
    assert '"x.yaml" is neither a file nor a bundled recipe' in line


@pytest.mark.parametrize("option", ["--source-column", "--target-column"])
def test_columns_without_a_table(prepare_refused, option):
    line = prepare_refused(*TEXT, *SMALL, option, "de")
    assert f"`{option}` needs a `--file`, `--valid-file` or" in line
    assert f"Received: {option} de, and no such file. Leave it out." in line


def test_full_disk_while_preparing(prepare_refused, monkeypatch):
    def fail(source, target, **_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(source))

    monkeypatch.setattr("os.replace", fail)
    monkeypatch.setattr("os.rename", fail)
    line = prepare_refused(*TEXT, *SMALL)
    assert "No space left" in line or "full" in line


def test_unknown_recipe_key_names_line_and_nearest(refused, recipe):
    file = recipe("    warmup_steps: ", "    warmpup_steps: ")
    line = refused("train", file)
    lines = Path(file).read_text().split("\n")
    number = 1 + lines.index("    warmpup_steps: 60")
    assert f"changed.yaml, line {number}" in line
    assert "did you mean `training.learning_rate.warmup_steps`?" in line


def test_unknown_key_in_set(refused, recipe):
    line = refused("train", recipe(), "--set", "training.stesp=3")
    assert "training.stesp" in line and "training.steps" in line
    more = ("--set", "seed=3")
    assert line == refused(
        "train", recipe(), "--set", "training.stesp=3", *more
    )
    assert "KEY=VALUE" in refused("train", recipe(), "--set", "training.steps")
    line = refused("train", recipe(), "--set", "training.steps=many")
    assert "training.steps" in line and "many" in line


def test_unknown_recipe_names_the_nearest(refused):
    line = refused("train", "transformer_tiny.multi30k_de_en")
    assert "transformer_tiny.multi30k_en_de" in line


def test_unknown_preset_names_the_nearest(refused, recipe, tmp_path):
    file = recipe("preset: transformer_tiny", "preset: transfromer_tiny")
    line = refused("train", file, "--run-dir", "run")
    assert 'Did you mean "transformer_tiny"?' in line
    assert not (tmp_path / "run").exists()


def test_unprepared_folder(refused, recipe, tmp_path):
    words = ["--prepared", "nowhere", "--run-dir", "run"]
    assert "nowhere" in refused("train", recipe(), *words)


def test_ids_outside_the_vocabulary(refused, recipe, digits, tmp_path):
    shutil.copytree(digits / "prepared", tmp_path / "prepared")
    manifest = tmp_path / "prepared" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["target_vocabulary_size"] = 12
    content["source_vocabulary_size"] = 12
    manifest.write_text(json.dumps(content))
    line = refused(
        *("train", recipe(), "--prepared", "prepared"),
        *("--run-dir", "run", "--quiet"),
    )
    assert "vocabulary" in line and "12" in line


def test_a_run_of_another_recipe_is_not_continued(refused, recipe, digits):
    line = refused(
        *("train", recipe(), "--set", "training.batch_tokens=512"),
        *("--run-dir", digits / "run"),
    )
    assert "training.batch_tokens" in line and "1024" in line


@pytest.mark.parametrize(
    "name", ["tokenizer/target.model", "model/model.weights.h5"]
)
def test_a_run_whose_files_do_not_fit_together(refused, broken_run, name):
    file = broken_run / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert name in refused("translate", broken_run)
    (broken_run / name).unlink()
    assert name in refused("translate", broken_run)


def test_a_run_whose_recipe_does_not_match_its_weights(refused, broken_run):
    file = broken_run / "run.json"
    content = json.loads(file.read_text())
    content["overrides"]["hidden_dim"] = 32
    file.write_text(json.dumps(content))
    line = refused("translate", broken_run)
    assert "model.weights.h5" in line


def test_an_unfinished_run(refused, broken_run, tmp_path):
    (broken_run / "run.json").unlink()
    for verb in ("evaluate", "translate"):
        assert "run.json" in refused(verb, broken_run)
    words = ["export", broken_run, tmp_path / "served"]
    assert "run.json" in refused(*words)
    assert not (tmp_path / "served").exists()
    assert "nosuch" in refused("translate", "nosuch")


@pytest.mark.thorough
def test_invalid_utf8_on_standard_input(deepnmt, digits, tmp_path):
    (tmp_path / "in").write_bytes(b"1 2 3\n4 5 6\n\xff\n7 8 9\n")
    done = deepnmt("translate", digits / "run", stdin=tmp_path / "in")
    assert done.code == 2
    assert done.out.count("\n") == 2
    assert done.err.startswith(
        "deepnmt translate: error: standard input, line 3: not UTF-8"
    )
    assert done.err.count("\n") == 1


def test_test_sets_that_do_not_fit(refused, digits, corpus):
    with open("train.target", "a") as file:
        file.write("1 2\n")
    for verb in ("score", "evaluate"):
        line = refused(verb, digits / "run", *TEXT)
        assert "400" in line and "401" in line
        line = refused(verb, digits / "run", *TEXT[:2], "--target", "nosuch")
        assert "nosuch" in line
    line = refused("evaluate", digits / "run", "--split", "tset")
    assert "tset" in line and "test" in line
    line = refused("evaluate", digits / "run", "--source", "train.source")
    assert "target" in line


def test_average_of_more_checkpoints_than_there_are(refused, digits, tmp_path):
    line = refused(
        *("average", digits / "run", "--last", "99"),
        *("--output", tmp_path / "mean"),
    )
    assert "99" in line
    assert not (tmp_path / "mean").exists()


def test_verify_of_something_else(refused, tmp_path):
    assert str(tmp_path) in refused("verify", tmp_path)
    assert "nosuch" in refused("verify", tmp_path / "nosuch")


def test_verify_of_a_folder_for_an_engine_against_a_server(refused, tmp_path):
    (tmp_path / EXPORT_FILE).write_text('{"format": "ctranslate2"}')
    line = refused("verify", tmp_path, "http://127.0.0.1:1/v1/models/a")
    assert "must be an export for TensorFlow Serving" in line
    assert "Received: a folder for CTranslate2. Leave out the URL" in line
