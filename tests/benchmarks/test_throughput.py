"""Rows of models in turns: ratios of rounds, and what the target says."""

import csv
from pathlib import Path

import pytest

from benchmarks.speed.measuring.training_steps import (
    GROUPS,
    PRESET_CONFIGURATIONS,
)
from benchmarks.speed.training_throughput import make_preset_row
from keras_deepnmt.zoo import list_models

RESULTS = Path(__file__).parents[2] / "benchmarks" / "speed" / "results"


def row(preset, seconds):
    steps = {"conv_seq2seq_4l": [1.0, 4.0, 2.0], preset: seconds}
    return make_preset_row("conv_4l", preset, steps, 3)


def test_a_dense_model_is_compared_with_the_baseline_of_its_round():
    found = row("dense_nmt_2_4l", [1.25, 16.0, 2.0])
    assert found["ratio_to_plain_median"] == 0.8
    assert found["ratio_to_plain_min"] == 0.25
    assert found["ratio_to_plain_max"] == 1.0
    assert found["keras_tokens_per_second"] == 64 * 32 / 2
    assert found["target"] and found["met"] is False
    assert row("dense_nmt_2_4l", [1.0, 4.5, 2.2])["met"] is True


def test_the_baseline_has_no_target():
    found = row("conv_seq2seq_4l", [1.0, 4.0, 2.0])
    assert found["ratio_to_plain_median"] == 1.0
    assert found["target"] == found["met"] == ""


def test_rows_fit_into_the_table_that_is_there():
    path = RESULTS / "training_throughput.csv"
    with path.open(newline="", encoding="utf-8") as file:
        columns = csv.DictReader(file).fieldnames
    assert set(columns) <= set(row("dense_nmt_2_4l", [1.0] * 3))


@pytest.mark.parametrize("name", GROUPS["conv"])
def test_the_presets_of_a_configuration_exist(name):
    presets = PRESET_CONFIGURATIONS[name]["presets"]
    assert set(presets) <= set(list_models())
    assert presets[0].startswith("conv_seq2seq")
