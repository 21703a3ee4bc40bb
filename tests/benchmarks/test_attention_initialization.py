"""How the comparison of initializers is counted and tabulated."""

from benchmarks.quality.attention_initialization import (
    INITIALIZERS,
    measured_trainings,
)
from benchmarks.shared.result_rows import append_rows, read_rows
from benchmarks.tables import quality_tables

TENTH, FULL = INITIALIZERS


def row(initializer, seed, bleu, commit="new"):
    return {
        "date": "2031-05-07",
        "commit": commit,
        "machine": "m",
        "sacrebleu": "2.6.0",
        "recipe": "r",
        "initializer": initializer,
        "seed": seed,
        "updates": 700,
        "bleu": bleu,
    }


def test_only_what_this_commit_has_measured_is_skipped(tmp_path):
    path = tmp_path / "rows.csv"
    append_rows(path, [row(TENTH, 1, 50.0, "old"), row(FULL, 2, 40.0)])
    rows = read_rows(path)
    assert measured_trainings(rows, "new") == {("new", FULL, "2", "700")}
    assert measured_trainings(rows, "new+") == set()


def test_the_table_pairs_seeds_of_the_newest_commit(tmp_path, monkeypatch):
    rows = [row(TENTH, 1, 99.0, "old")]
    for seed, bleu in ((1, 80.0), (2, 84.0), (3, 88.0)):
        rows += [row(TENTH, seed, bleu), row(FULL, seed, bleu - 2.0)]
    append_rows(tmp_path / "attention_initialization.csv", rows)
    monkeypatch.setattr(quality_tables, "RESULTS", tmp_path)
    _, table, note = quality_tables._attention_initialization()
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert lines[2][:3] == [TENTH, "3", "84.0 ± 9.9"]
    assert lines[3] == [FULL, "3", "82.0 ± 9.9", "-2"]
    assert "700 updates" in note


def test_there_is_no_table_without_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(quality_tables, "RESULTS", tmp_path)
    assert quality_tables._attention_initialization() == []
