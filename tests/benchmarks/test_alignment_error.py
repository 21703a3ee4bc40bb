"""How the alignment errors of decoder blocks are measured and tabulated."""

import keras
import pytest

from benchmarks.quality.alignment_error import error_rates, measured_seeds
from benchmarks.shared.result_rows import append_rows, read_rows
from benchmarks.tables import quality_tables
from keras_deepnmt import Translator, create_model
from keras_deepnmt.data.demo import demo_alignments
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer


def row(layer, seed, rate, commit="new"):
    return {
        "date": "2031-05-07",
        "commit": commit,
        "machine": "m",
        "recipe": "r",
        "seed": seed,
        "updates": 700,
        "decoder_blocks": 2,
        "layer": layer,
        "alignment_error_rate": rate,
    }


def test_each_block_is_measured(tmp_path):
    texts = [f"{pair.source} {pair.target}" for pair in demo_alignments()]
    tokenizer = train_tokenizer(texts, tmp_path / "joint.model", 200)
    keras.utils.set_random_seed(1)
    model = create_model("transformer_tiny", 200, 200, num_decoder_layers=3)
    translator = Translator(model, tokenizer, tokenizer, compiled=False)
    rates = error_rates(translator)
    assert len(rates) == 3
    # The model is not trained.
    assert all(0.5 < rate < 1 for rate in rates)


def test_only_what_this_commit_has_measured_is_skipped(tmp_path):
    path = tmp_path / "rows.csv"
    append_rows(path, [row(1, 1, 0.5, "old"), row(1, 2, 0.5)])
    rows = read_rows(path)
    assert measured_seeds(rows, "new", 700) == {"2"}
    assert measured_seeds(rows, "new", 800) == set()
    assert measured_seeds(rows, "new+", 700) == set()


def test_the_table_has_a_line_for_each_block(tmp_path, monkeypatch):
    rows = [row(1, 1, 0.9, "old")]
    for seed in (1, 2, 3):
        rows += [row(1, seed, 0.2), row(2, seed, 0.1 * seed)]
    append_rows(tmp_path / "alignment_error.csv", rows)
    monkeypatch.setattr(quality_tables, "RESULTS", tmp_path)
    _, table, note = quality_tables._alignment_error()
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert lines[2][:2] == ["1 of 2", "3"]
    assert [line[2].split()[0] for line in lines[2:]] == ["20", "20"]
    assert "700 updates" in note


@pytest.mark.parametrize("content", [None, ""])
def test_there_is_no_table_without_rows(tmp_path, monkeypatch, content):
    if content is not None:
        (tmp_path / "alignment_error.csv").write_text(content)
    monkeypatch.setattr(quality_tables, "RESULTS", tmp_path)
    assert quality_tables._alignment_error() == []
