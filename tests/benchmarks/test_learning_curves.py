"""What a learning curve saves: crossings by hand, levels that are never
reached, pairs of seeds, and what is trained again."""

import csv
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.quality.learning_curves import KEY, measured_curves
from benchmarks.quality.measuring.curve_plot import read_curves
from benchmarks.quality.measuring.updates_saved import (
    first_reached,
    levels,
    summarize,
)

REPOSITORY = Path(__file__).parents[2]
FALLING = [(0, 9.0), (100, 5.0), (200, 6.0), (300, 4.0), (400, 3.0)]


@pytest.mark.parametrize(
    "level, updates",
    [
        (9.0, 0),
        (10.0, 0),
        (7.0, 50),
        (5.0, 100),
        # Between 200 and 300: what was lower before does not count.
        (4.5, 275),
        (3.0, 400),
        (2.9, math.inf),
    ],
)
def test_a_level_is_reached_between_two_validations(level, updates):
    assert first_reached(FALLING, level) == updates


def test_a_loss_that_is_no_number_reaches_nothing():
    diverged = [(0, 9.0), (100, math.nan), (200, math.nan)]
    assert first_reached(diverged, 5.0) == math.inf
    # Nothing can be said of the way out of it.
    assert first_reached([*diverged, (300, 4.0)], 5.0) == 300
    assert list(levels(diverged).values()) == [9.0, 9.0, 9.0]


def test_levels_are_the_best_so_far():
    assert list(levels(FALLING).values()) == [5.0, 4.0, 3.0]


def rows_of(preset, seed, curve, commit="new", parameters=1_000, **settings):
    return [
        {
            "date": "2031-05-07",
            "commit": commit,
            "machine": "m",
            "corpus": "demo",
            "updates": "400",
            "validate_every": "100",
            "batch_tokens": "70",
            "learning_rate": "0.25",
            "device": "CPU",
            "preset": preset,
            "parameters": str(parameters),
            "seed": str(seed),
            "update": str(update),
            "val_loss": str(loss),
            **settings,
        }
        for update, loss in curve
    ]


def times(factor, curve):
    """The same losses after so many times as many updates."""
    return [(round(factor * update), loss) for update, loss in curve]


def test_saved_updates_are_means_over_seeds_paired_with_themselves():
    slow = [(0, 9.0), (200, 7.0), (300, 5.0), (400, 1.0)]
    other = [(0, 8.0), (200, 4.0), (300, 3.0), (400, 2.0)]
    rows = [
        *rows_of("dense", 1, FALLING, commit="old"),
        *rows_of("plain", 1, slow),
        *rows_of("plain", 2, other, parameters=2_000),
        *rows_of("dense", 1, times(0.5, slow)),
        *rows_of("dense", 2, times(0.75, other), parameters=3_000),
        # No seed to be paired with.
        *rows_of("dense", 3, FALLING),
    ]
    found = summarize(rows, "plain")
    assert [row["updates_against"] for row in found] == ["200", "300", "400"]
    # Medians of 100 and 150, of 150 and 225, of 200 and 300.
    assert [row["updates_needed"] for row in found] == ["125", "188", "250"]
    assert [row["val_loss"] for row in found] == ["5.5", "4", "1.5"]
    for row in found:
        assert row["seeds"] == 2
        assert row["saved"] == "+0.375"
        # Shares 0.5 and 0.25: 12.706 times 0.125.
        assert float(row["saved_interval"]) == pytest.approx(1.6, abs=0.05)
        assert row["parameters"] == "3000"
        assert row["parameters_against"] == "2000"


def test_a_seed_that_never_gets_there_is_not_averaged_away():
    rows = [
        *rows_of("plain", 1, FALLING),
        *rows_of("plain", 2, FALLING),
        *rows_of("plain", 3, FALLING),
        *rows_of("dense", 1, times(0.5, FALLING)),
        *rows_of("dense", 2, times(0.5, FALLING)),
        *rows_of("dense", 3, [(0, 9.0), (400, 4.5)]),
    ]
    half, later, best = summarize(rows, "plain")
    assert float(half["saved"]) < 0.5
    for row in (later, best):
        assert row["saved"] == "never in 1 of 3 seeds"
        assert row["saved_interval"] == ""
    assert best["updates_needed"] == "200"
    # Another device is another setting, where the only seed never does.
    rows += rows_of("dense", 2, [(0, 9.0), (400, 4.5)], device="GPU")
    rows += rows_of("plain", 2, FALLING, device="GPU")
    (last,) = [
        r for r in summarize(rows, "plain")[3:] if r["level"] == best["level"]
    ]
    assert last["updates_needed"] == "never"
    assert last["saved"] == "never in 1 of 1 seeds"


def test_a_curve_of_the_same_commit_and_settings_is_not_trained_again():
    rows = rows_of("plain", 1, FALLING)
    done = measured_curves(rows, "new")
    assert {tuple(rows[0][name] for name in KEY)} == done
    assert measured_curves(rows, "new+") == set()


def test_the_plot_has_the_newest_curves_of_its_setting():
    rows = [
        *rows_of("plain", 1, [(0, 9.0)], commit="old"),
        *rows_of("plain", 1, FALLING),
        *rows_of("dense", 2, FALLING),
        *rows_of("dense", 2, FALLING, corpus="multi30k"),
    ]
    settings = {"corpus": "demo", "learning_rate": 0.25}
    assert read_curves(rows, settings) == {
        "plain": {"1": FALLING},
        "dense": {"2": FALLING},
    }


@pytest.mark.thorough
def test_two_curves_are_trained_compared_and_drawn(tmp_path):
    output = tmp_path / "learning_curves.csv"
    subprocess.run(
        [
            *(sys.executable, "benchmarks/quality/learning_curves.py"),
            *("--size", "smoke", "--output", output),
            *("--only", "conv_seq2seq_tiny", "dense_nmt_2_tiny"),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=True,
        capture_output=True,
    )
    with output.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["update"] for row in rows] == ["0", "2", "4"] * 2
    assert all(0 < float(row["val_loss"]) < 9 for row in rows)
    with (tmp_path / "updates_saved.csv").open(encoding="utf-8") as file:
        saved = list(csv.DictReader(file))
    assert [row["model"] for row in saved] == ["dense_nmt_2_tiny"] * 3
    assert (tmp_path / "learning_curves_demo.svg").stat().st_size > 1_000
