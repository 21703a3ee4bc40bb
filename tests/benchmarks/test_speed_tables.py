"""Tables of speed show together only what was measured together."""

import pytest

from benchmarks.shared.result_rows import append_rows
from benchmarks.tables import speed_tables
from benchmarks.tables.speed_tables import speed_summary
from benchmarks.tables.speed_tables import speed_tables as tables


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Writes made-up CSV files; the tables see no others."""
    monkeypatch.setattr(speed_tables, "RESULTS", tmp_path)

    def write(name, rows):
        append_rows(tmp_path / f"{name}.csv", rows)

    return write


def cells(title):
    """The lines of a section's table, without its heading; cells by place."""
    blocks = tables()
    if f"### {title}" not in blocks:
        return []
    table = blocks[blocks.index(f"### {title}") + 1]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def step(commit, variant, tokens, ratio_to_plain):
    return {
        "date": "2031-05-07",
        "commit": commit,
        "machine": "p, 2 cores",
        "model": "3+3x256",
        "hidden_dim": 256,
        "num_layers": 3,
        "variant": variant,
        "keras_tokens_per_second": tokens,
        "torch_tokens_per_second": 1_000,
        "ratio_median": tokens / 1_000,
        "ratio_min": 1,
        "ratio_max": 2,
        "peak_fraction_median": 0.7,
        "ratio_to_plain_median": ratio_to_plain,
        "ratio_to_plain_min": 1,
        "ratio_to_plain_max": 2,
    }


def test_a_training_step_stands_beside_the_plain_step_of_its_measurement(
    results,
):
    rows = [
        step("first", "plain", 2_000, 1),
        step("first", "2 parts", 2_200, 1.1),
        step("second", "plain", 1_500, 1),
    ]
    results("training_throughput", rows)
    (plain,) = cells("Training step compared with PyTorch")
    assert plain[:3] == ["3+3 layers, width 256", "1,500", "1,000"]
    ((_, name, speed, plain_speed, ratio, _),) = cells(
        "Other training steps compared with the plain one"
    )
    assert name == "gradients accumulated over 2 parts"
    assert (speed, plain_speed, ratio) == ("2,200", "2,000", "1.10")
    assert "| 1,500 | 1,000 | 1.50 |" in speed_summary()[1]


def test_joeynmt_is_compared_only_at_equally_many_tokens_in_an_update(results):
    row = {
        "date": "2031-05-07",
        "machine": "p, 2 cores",
        "corpus": "multi30k_tok_en_de",
        "keras_tokens_per_update": 4_000,
        "joeynmt_tokens_per_update": 2_100,
        "keras_tokens_per_second": 8_000,
        "joeynmt_tokens_per_second": 2_000,
        "ratio_median": 4,
        "ratio_min": 3,
        "ratio_max": 5,
    }
    results("joeynmt_throughput", [row])
    title = "Training compared with JoeyNMT"
    assert cells(title) == []
    results("joeynmt_throughput", [row | {"joeynmt_tokens_per_update": 4_050}])
    assert [line[1:3] for line in cells(title)] == [["4,000", "4,050"]]


def test_only_the_newest_start_of_a_command_is_shown(results):
    def start(seconds, lines=1, old_commit=""):
        ways = ("plain", "compiled", "cached")
        figures = ("median", "min", "max")
        return {
            "date": "2031-05-07",
            "machine": "p, 2 cores",
            "recipe": "r",
            "lines": lines,
            "tokens": 11,
            "old_commit": old_commit,
            **{f"{way}_seconds_median": seconds for way in ways},
            **{f"{way}_elapsed_median": seconds for way in ways},
            **{
                f"{way}_relative_to_old_{figure}": 1.5
                for way in ways
                for figure in figures
            },
        }

    results(
        "translation_start",
        [start(14), start(7, 1_000), start(13, 1, "abc"), start(5)],
    )
    shown = cells("First translations of a command")
    assert [(line[1], line[3]) for line in shown] == [
        ("1", "5.0, 5.0"),
        ("1000", "7.0, 7.0"),
        ("1", "13.0, 13.0"),
    ]
