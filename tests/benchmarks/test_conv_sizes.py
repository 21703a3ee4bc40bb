"""How memory grows with depth, and how counts stand beside printed sizes."""

import csv
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.memory.dense_memory import STACKS, add_fits
from benchmarks.memory.measuring.depth_fit import growth_exponent, growth_terms
from benchmarks.memory.published_sizes import (
    DATA,
    MODELS,
    make_row,
    preset_name,
)
from benchmarks.shared.parameter_counts import plain_model_of, timing_baseline
from keras_deepnmt.zoo import list_models

REPOSITORY = Path(__file__).parents[2]
DEPTHS = [4, 8, 12, 16]


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_is_found(exponent):
    values = [7.0 * depth**exponent for depth in DEPTHS]
    assert growth_exponent(DEPTHS, values) == pytest.approx(exponent)


def test_a_constant_part_lowers_the_exponent_and_not_the_terms():
    values = [100 + 3 * depth + 0.5 * depth**2 for depth in DEPTHS]
    assert growth_exponent(DEPTHS, values) < 1
    assert growth_terms(DEPTHS, values) == pytest.approx((100, 3, 0.5))


def test_two_depths_have_no_square():
    assert all(map(math.isnan, growth_terms([4, 8], [1.0, 2.0])))


def test_every_row_of_a_stack_has_its_fit():
    rows = [{"layers": d, "kib_per_token": 2 + d**2} for d in DEPTHS]
    add_fits(rows)
    for row in rows:
        assert row["fit_constant"] == pytest.approx(2)
        assert row["fit_linear"] == pytest.approx(0, abs=1e-6)
        assert row["fit_quadratic"] == pytest.approx(1)
        assert 1.8 < row["exponent"] < 2


def test_a_count_stands_beside_the_printed_size():
    row = make_row("De-En", "BASE-4L", 128, 10_742_198)
    assert row["model"] == "conv_seq2seq_4l_embed_128"
    assert (row["millions"], row["published_millions"]) == (10.74, 11)
    assert (row["difference"], row["within"]) == ("-0.26", True)
    row = make_row("De-En", "DenseNMT-8L-2", 256, 19_985_142)
    assert row["model"] == "dense_nmt_2_8l"
    assert (row["difference"], row["within"]) == ("+2.99", False)


def test_all_models_of_the_paper_s_table_are_presets():
    for printed, _ in DATA.values():
        for preset in MODELS.values():
            names = {preset_name(preset, width) for width in printed}
            assert names <= set(list_models())


@pytest.mark.parametrize(
    ("name", "plain", "beside"),
    [
        ("dense_nmt_1_tiny", "conv_seq2seq_tiny", "conv_seq2seq_tiny"),
        ("dense_attention_4l", "conv_seq2seq_4l", "conv_seq2seq_tiny"),
        ("dense_nmt_2_8l_embed_64", "conv_seq2seq_8l_embed_64", None),
        ("conv_seq2seq_15l", "conv_seq2seq_15l", None),
        ("layer_attention_base", "layer_attention_base", "transformer_tiny"),
        ("transformer_big_matched", "role_interaction_dense_big", None),
    ],
)
def test_a_preset_stands_beside_the_plain_one_of_its_backbone(
    name, plain, beside
):
    found, empty = plain_model_of(name)
    assert found == plain
    # A Transformer is plain with empty slots.
    assert bool(empty) != name.startswith(("conv", "dense"))
    assert beside in (None, timing_baseline(name))


@pytest.mark.thorough
def test_memory_is_read_from_what_xla_plans(tmp_path):
    output = tmp_path / "memory.csv"
    name = list(STACKS)[1]
    subprocess.run(
        [
            *(
                sys.executable,
                "benchmarks/memory/dense_memory.py",
                "--size",
                "smoke",
            ),
            *("--only", name, "--output", output),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=True,
        capture_output=True,
    )
    with output.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    memory = [int(row["scratch_bytes"]) for row in rows]
    assert 0 < memory[0] < memory[1] < memory[2]
    assert {row["stack"] for row in rows} == {name}
