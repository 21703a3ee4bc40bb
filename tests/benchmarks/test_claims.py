"""How claims are counted: intervals, and what is missing."""

import math

import pytest

from benchmarks.quality.claims import CLAIMS, missing_variants, read_rows
from benchmarks.quality.measuring.claims_summary import summarize
from benchmarks.quality.measuring.seed_statistics import mean_and_interval
from benchmarks.shared.result_rows import append_rows


def test_an_interval_by_hand():
    # Deviation 1, three values: 4.303 / sqrt(3).
    mean, interval = mean_and_interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert interval == pytest.approx(4.303 / 3**0.5)
    assert math.isnan(mean_and_interval([5.0])[1])


def row(variant, seed, value, commit="new", metric="valid_loss"):
    return {
        "date": "2031-05-07",
        "commit": commit,
        "machine": "m",
        "claim": "positions",
        "variant": variant,
        "seed": seed,
        "updates": 7,
        "parameters": 11,
        "metric": metric,
        "value": value,
    }


def test_differences_are_of_the_same_seeds_and_the_last_commit(tmp_path):
    path = tmp_path / "claims.csv"
    rows = [row("plain", seed, 9.9, commit="old") for seed in (1, 2, 3)]
    # Seeds differ by much, variants by a little and steadily.
    for seed, base in ((1, 1.0), (2, 2.0), (3, 3.0)):
        rows.append(row("plain", seed, base))
        rows.append(row("hybrid, sum", seed, base - 0.5))
    append_rows(path, rows)
    variants_of = {claim: variants for claim, (_, variants) in CLAIMS.items()}
    plain, hybrid = summarize(read_rows(path), variants_of)
    assert (plain["variant"], plain["mean"], plain["seeds"]) == (
        "plain",
        "2",
        3,
    )
    assert plain["difference"] == ""
    assert hybrid["against"] == "plain"
    assert float(hybrid["mean"]) == 1.5
    assert float(hybrid["difference"]) == -0.5
    assert float(hybrid["difference_interval"]) == 0.0


def test_only_what_is_missing_is_measured(tmp_path):
    path = tmp_path / "claims.csv"
    variants = CLAIMS["positions"][1]

    def missing(commit="new", seed=1, updates=7):
        rows = read_rows(path)
        return missing_variants(rows, commit, "positions", seed, updates)

    assert missing() == variants
    append_rows(path, [row("plain", 1, 0.5), row("plain", 1, 30, metric="b")])
    assert missing() == variants[1:]
    assert missing(commit="newer") == variants
    assert missing(seed=2) == variants
    assert missing(updates=8) == variants
