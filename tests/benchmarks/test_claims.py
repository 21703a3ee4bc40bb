"""How claims are counted: agreement, intervals, and what is missing."""

import math

import pytest

from benchmarks.quality.claims import CLAIMS, missing_variants, read_rows
from benchmarks.quality.measuring.claims_summary import summarize
from benchmarks.quality.measuring.seed_statistics import (
    mean_and_interval,
    v_measure,
    v_measure_by_chance,
)
from benchmarks.shared.result_rows import append_rows


@pytest.mark.parametrize(
    "classes, clusters, expected",
    [
        # The same grouping under other names, and one cluster for all.
        ("aabb", "1100", 1.0),
        ("aabb", "0000", 0.0),
        ("aaaa", "0123", 0.0),
        ("aaaa", "0000", 1.0),
        # h = 1, c = 1 / 1.5; then h = 1, c = 1 / 2.
        ("aabb", "0012", 0.8),
        ("aabb", "0123", 2 / 3),
        # Independent of each other.
        ("aabb", "0101", 0.0),
    ],
)
def test_v_measure_by_hand(classes, clusters, expected):
    found = v_measure(classes, clusters)
    assert found == pytest.approx(expected, abs=1e-12)


def test_v_measure_is_the_mean_of_homogeneity_and_completeness():
    classes, clusters = "aaaabbbbcc", "0012011122"

    def entropy(*groups):
        items = list(zip(*groups, strict=True))
        shares = [items.count(item) / len(items) for item in set(items)]
        return -sum(share * math.log(share) for share in shares)

    both = entropy(classes, clusters)
    h = 1 - (both - entropy(clusters)) / entropy(classes)
    c = 1 - (both - entropy(classes)) / entropy(clusters)
    expected = 2 * h * c / (h + c)
    assert v_measure(classes, clusters) == pytest.approx(expected)


def test_chance_keeps_the_sizes_and_falls_with_the_number_of_items():
    few = v_measure_by_chance("aab" * 10, "001" * 10)
    many = v_measure_by_chance("aab" * 100, "001" * 100)
    assert v_measure("aab" * 10, "001" * 10) == pytest.approx(1.0)
    assert 0 < many < few < 0.2
    assert v_measure_by_chance("aab" * 10, "000" * 10) == 0.0


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
