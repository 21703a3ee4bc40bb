"""All commands in real processes: the model learns, and the numbers agree.

A small model must learn to reverse digits, and the results of the commands must
agree: translations, n-best lists, scores, and the export.
"""

import json
import subprocess
import sys

import pytest
from digit_run import deepnmt_process, digit_folder, environment


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return digit_folder(tmp_path_factory)


def run(*words, folder, stdin=""):
    # As a user's commands, each finds the programs that earlier ones compiled.
    cache = str(folder / "cache")
    done = deepnmt_process(
        *words, folder=folder, stdin=stdin, DEEPNMT_CACHE=cache
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_folder_holds_what_it_promises(folder):
    names = {path.name for path in (folder / "run").iterdir()}
    assert names >= {
        *("recipe.yaml", "run.json", "log.csv", "tokenizer", "model"),
        *("checkpoints", "tensorboard"),
    }
    assert not [name for name in names if name.startswith(".")]


def test_it_learned(folder):
    out = run("evaluate", "run", "--output", "hypotheses", folder=folder)
    rows = dict(line.split("\t")[:2] for line in out.splitlines())
    assert float(rows["bleu"]) >= 95
    assert "tok:none" in out
    scores = json.loads((folder / "run" / "scores.json").read_text())
    (row,) = scores["evaluations"]
    assert row["scores"]["bleu"]["value"] == pytest.approx(
        float(rows["bleu"]), abs=0.005
    )
    outputs = (folder / "hypotheses").read_text()
    sources = (folder / "test.source").read_text()
    assert run("translate", "run", folder=folder, stdin=sources) == outputs


@pytest.mark.thorough
def test_score_of_a_translation_is_the_score_of_the_search(folder):
    lines = (folder / "test.source").read_text().splitlines()[:20]
    nbest = run(
        *("translate", "run", "--num-hypotheses", "2"),
        *("--length-penalty", "0"),
        folder=folder,
        stdin="\n".join(lines) + "\n",
    )
    rows = [line.split(" ||| ") for line in nbest.splitlines()]
    assert len(rows) == 40
    assert [row[0] for row in rows[::2]] == [str(n) for n in range(20)]
    sources = [lines[int(number)] for number, _, _ in rows]
    (folder / "nbest.source").write_text("\n".join(sources) + "\n")
    (folder / "nbest.target").write_text(
        "".join(f"{text}\n" for _, text, _ in rows)
    )
    words = ["--source", "nbest.source", "--target", "nbest.target"]
    totals = run("score", "run", *words, "--totals", folder=folder)
    tokens = run("score", "run", *words, folder=folder)
    sums = {}
    for row in tokens.splitlines()[1:]:
        line, _, _, log_prob = row.split("\t")
        sums[line] = sums.get(line, 0.0) + float(log_prob)
    compared = 0
    for (_, text, score), row in zip(
        rows, totals.splitlines()[1:], strict=True
    ):
        line, num_tokens, log_prob = row.split("\t")
        assert float(log_prob) == pytest.approx(sums[line], abs=1e-4)
        # A hypothesis may be cut into other pieces than its text would be.
        if int(num_tokens) == len(text.split()) + 1:
            assert float(score) == pytest.approx(float(log_prob), abs=1e-4)
            compared += 1
    assert compared >= 20


@pytest.mark.thorough
def test_an_average_is_a_run(folder):
    words = ["average", "run", "--last", "2", "--output", "mean"]
    assert run(*words, folder=folder) == "mean\n"
    out = run("evaluate", "mean", "--metrics", "bleu", folder=folder)
    assert float(out.split("\t")[1]) >= 95


@pytest.mark.thorough
def test_the_export_translates_without_this_package(folder):
    out = run("export", "run", "served", folder=folder)
    assert out == "served/1\n"
    script = (
        "import json, sys, tensorflow as tf, tensorflow_text;"
        "model = tf.saved_model.load('served/1');"
        "found = model.signatures['serving_default'](text=tf.constant("
        "['1 2 3 4', '7 5 9']));"
        "print(json.dumps([t.decode() for t in found['text'].numpy()]));"
        "print('keras_deepnmt' in sys.modules)"
    )
    # An interpreter of its own, which knows nothing of this package.
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env=environment(PYTHONPATH=""),
    )
    assert done.returncode == 0, done.stderr
    texts, ours = done.stdout.splitlines()
    assert json.loads(texts) == ["4 3 2 1", "9 5 7"]
    assert ours == "False"
