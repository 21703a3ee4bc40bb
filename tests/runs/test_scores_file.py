"""What must be true of `scores.json`.

* a row of the same setting is replaced, others stay
* evaluations that end at the same time lose no row
"""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from keras_deepnmt.files import lines_sha256
from keras_deepnmt.runs import scores_file as module
from keras_deepnmt.runs.scores_file import (
    add_scores,
    given_sha256,
    read_scores,
)


def row(name, value=1.0):
    return {
        "test_set": {"name": name, "sentences": 5},
        "decoding": {"num_beams": 4},
        "evaluation": {"metrics": ["bleu"]},
        "scores": {"bleu": {"value": value, "signature": "tok:13a"}},
    }


def recorded(file):
    rows = json.loads(file.read_text())["evaluations"]
    return {r["test_set"]["name"]: r["scores"]["bleu"]["value"] for r in rows}


def test_a_row_of_the_same_setting_is_replaced(tmp_path):
    file = tmp_path / "scores.json"
    for name, value in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
        add_scores(file, row(name, value))
    assert recorded(file) == {"b": 2.0, "a": 3.0}


def test_a_row_with_other_given_text_is_another_row(tmp_path):
    file = tmp_path / "scores.json"
    given = given_sha256(["We", ""], [["a", "b"], []], [0, 9])
    assert given == {
        "prefixes_sha256": lines_sha256(["We", ""]),
        "constraints_sha256": lines_sha256(["a\tb", ""]),
        "max_lengths_sha256": lines_sha256(["", "9"]),
    }
    others = [given, given_sha256(["We", "a"]), given_sha256(["We", ""])]
    for value in others:
        add_scores(file, {**row("a"), "given": value})
    # One that was written before there was a name for it.
    add_scores(file, row("a"))
    add_scores(file, {**row("a"), "given": given})
    found = [each.get("given") for each in read_scores(file)]
    assert found == [*others[1:], None, given]


def test_two_evaluations_at_once_lose_no_score(tmp_path, monkeypatch):
    file = tmp_path / "scores.json"
    write_json, both_began = module.write_json, threading.Barrier(2)

    def slow(*arguments):
        time.sleep(0.2)
        write_json(*arguments)

    monkeypatch.setattr(module, "write_json", slow)

    def add(name):
        both_began.wait()
        add_scores(file, row(name))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(add, "ab"))
    assert recorded(file) == {"a": 1.0, "b": 1.0}
    assert os.listdir(tmp_path) == ["scores.json"]
