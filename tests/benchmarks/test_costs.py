"""What layers and presets cost: counted right, kept in rows, and gone on with
where a measurement was interrupted."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_deepnmt
from benchmarks.shared.compiled_programs import count_multiply_adds
from benchmarks.shared.result_rows import replace_row
from benchmarks.speed import preset_cost
from benchmarks.speed.layer_speed import make_row
from benchmarks.speed.measuring.layer_case import SIZES, Case
from benchmarks.speed.measuring.layer_cases import CASES
from keras_deepnmt.decoding import beam_search
from keras_deepnmt.masks import END_ID

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
ENTRY %main.1 (arg0.1: f32[3,5,7]) -> f32[3,5,11] {
  %arg0.1 = f32[3,5,7]{2,1,0} parameter(0)
  arg1.1 = f32[7,11]{1,0} parameter(1)
  %dot.1 = f32[3,5,11]{2,1,0} dot(%arg0.1, arg1.1), lhs_contracting_dims={2}
  ROOT %dot.2 = f32[5,5]{1,0} dot(f32[3,5,11]{2,1,0} %dot.1, %dot.1), \
lhs_contracting_dims={0,2}, rhs_contracting_dims={0,2}
}
"""


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_multiply_adds_of_products_are_counted():
    count = 3 * 5 * 11 * 7 + 5 * 5 * 3 * 11
    assert count_multiply_adds(PROGRAM) == count
    assert count_multiply_adds("  ROOT %sum = f32[] add(%a, %b)") == 0


@pytest.mark.parametrize(
    "shapes, labels",
    [
        # Output, input, kernel: forward, and the gradients of both.
        (((3, 5, 22), (3, 7, 11), (3, 11, 22)), "b0f_0io->b0f"),
        (((3, 7, 11), (3, 5, 22), (3, 11, 22)), "b0f_0oi->b0f"),
        (((3, 11, 22), (3, 7, 11), (3, 5, 22)), "f0b_i0o->0bf"),
    ],
)
def test_the_multiply_adds_of_convolutions_are_counted(shapes, labels):
    output, left, right = (f"f32{list(s)}".replace(" ", "") for s in shapes)
    program = (
        f"  %x.1 = {left}{{2,1,0}} parameter(0)\n"
        f"  %y.1 = {right}{{2,1,0}} parameter(1)\n"
        f"  ROOT %c.1 = {output}{{2,1,0}} convolution(%x.1, %y.1), "
        f"window={{size=3 pad=2_2}}, dim_labels={labels}, metadata={{}}"
    )
    positions = 7 if "oi" in labels else 5
    assert count_multiply_adds(program) == 3 * positions * 3 * 11 * 22


def test_what_a_loop_repeats_is_not_guessed():
    loop = "  %while.1 = (s32[], f32[3]) while(%tuple.1), condition=%c, body=%b"
    assert count_multiply_adds(PROGRAM + loop) is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_layers_of_a_case_can_be_made(case):
    sizes = SIZES["tiny"][case.kind]
    for made in (case.make(sizes), case.make_plain(sizes)):
        if case.kind == "preset":
            assert made in keras_deepnmt.list_models()
            continue
        layers = {"layer": [made], "call": [getattr(made, "layer", None)]}
        for layer in layers.get(case.kind) or made.values():
            assert isinstance(layer, keras.layers.Layer)


@pytest.mark.parametrize(
    "kind, of_multiply_adds, target, met",
    [
        ("layer", False, 3.1, True),
        ("layer", False, 2.9, False),
        # Training takes 1.2 times as long with 1.5 times the products.
        ("model", False, 1.3, True),
        ("layer", True, 2.1, True),
        ("layer", True, 1.9, False),
        ("layer", False, None, ""),
    ],
)
def test_a_row_says_whether_the_target_is_met(
    kind, of_multiply_adds, target, met
):
    case = Case(
        "Layer", "variant", "plain", kind, None, None, target, of_multiply_adds
    )
    found = {
        ("forward", "paper"): [3.0, 6.0, 9.0],
        ("forward", "plain"): [1.0, 2.0, 3.0],
        ("training", "paper"): [1.0, 1.2, 9.0],
        ("training", "plain"): [1.0, 1.0, 1.0],
    }
    compiled = {
        key: {"multiply_adds": 15 if key[1] == "paper" else 10, "bytes": 2**20}
        for key in found
    }
    row = make_row(case, {"length": 7}, 3, found, compiled)
    assert row["met"] == met
    assert row["forward_ratio_median"] == 3.0
    assert row["training_ratio_median"] == 1.2
    assert row["training_ratio_three_quarters"] == 5.1
    assert row["training_multiply_adds_ratio"] == 1.5
    assert row["memory_ratio"] == 1.0


def test_a_layer_is_timed_beside_what_it_replaces(tmp_path):
    output = tmp_path / "speed.csv"
    subprocess.run(
        [
            *(
                sys.executable,
                "benchmarks/speed/layer_speed.py",
                "--size",
                "tiny",
            ),
            *("--rounds", "1", "--output", output),
            *("--only", "HybridSelfAttention, concat*against 1 branch"),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=True,
        capture_output=True,
    )
    (row,) = rows(output)
    assert row["layer"] == "HybridSelfAttention"
    # Per token: 4 projections, F of n branches, and 1 + n products over S.
    four, one = ((4 + n) * 64**2 + (1 + n) * 8 * 64 for n in (4, 1))
    for way in ("forward", "training"):
        ratio = float(row[f"{way}_multiply_adds_ratio"])
        assert ratio == pytest.approx(four / one, abs=1e-4)
        assert float(row[f"{way}_ratio_median"]) > 0
    assert float(row["memory_ratio"]) > 1


def test_one_row_stays_for_each_preset(tmp_path):
    path = tmp_path / "costs.csv"
    for name, number in (("a", 1), ("b", 2), ("a", 3)):
        replace_row(path, {"preset": name, "parameters": number}, "preset")
    assert rows(path) == [
        {"preset": "a", "parameters": "3"},
        {"preset": "b", "parameters": "2"},
    ]


def test_counting_makes_no_weights_and_counts_them_all():
    overrides = dict(num_encoder_layers=1, num_decoder_layers=1)
    count = preset_cost.ParameterCounter(overrides)
    for name, size in (("transformer_tiny", 8_000), ("transformer_base", 11)):
        model = keras_deepnmt.create_model(name, size, size, **overrides)
        sizes = preset_cost.vocabulary_size(name) - size
        # Both share one matrix.
        assert count(name) - model.count_params() == sizes * 512


def test_a_measured_search_never_ends_early():
    model = keras_deepnmt.create_model(
        "transformer_tiny", 13, 13, num_encoder_layers=1, num_decoder_layers=1
    )
    source_ids = np.array([[5, 6, 3], [7, 3, 0]], "int32")
    # The end is by far the likeliest token of this model.
    embedding = np.asarray(model.target_embedding.embeddings)
    model.target_embedding.embeddings.assign(
        embedding * (1 + 1e3 * (np.arange(13) == END_ID))[:, None]
    )
    ids = beam_search(
        model,
        source_ids,
        options=preset_cost.fixed_length_options(5),
        max_length=5,
    )["ids"]
    ended = np.asarray(ids) == END_ID
    assert np.all(ended[..., -1]) and not np.any(ended[..., :-1])


def test_presets_with_a_row_of_this_commit_are_not_counted_again(
    tmp_path, monkeypatch
):
    path = tmp_path / "costs.csv"
    monkeypatch.setattr(
        preset_cost, "provenance", lambda *_: {"date": "1", "commit": "abc"}
    )
    counted = []
    monkeypatch.setattr(
        preset_cost.ParameterCounter,
        "__call__",
        lambda self, name, **slots: counted.append(name) or 7,
    )
    arguments = ["--output", str(path), "--only"]

    preset_cost.main([*arguments, "layer_attention_base"])
    assert set(counted) == {"layer_attention_base"}
    counted.clear()
    preset_cost.main([*arguments, "layer_attention_b*"])
    assert set(counted) == {"layer_attention_big"}
    found = {row["preset"]: row["parameters"] for row in rows(path)}
    assert found == {"layer_attention_base": "7", "layer_attention_big": "7"}
    counted.clear()
    preset_cost.main([*arguments, "layer_attention_base", "--again"])
    assert set(counted) == {"layer_attention_base"}
    assert preset_cost.measured_presets(path, "abc+") == set()


@pytest.mark.thorough
def test_a_preset_is_measured_beside_the_plain_model(tmp_path):
    path = tmp_path / "costs.csv"
    preset_cost.main(
        [
            *("--output", str(path), "--size", "smoke", "--rounds", "1"),
            *("--only", "transformer_tiny"),
        ]
    )
    (row,) = rows(path)
    assert row["extra_parameters"] == "0"
    for way in ("step", "decode"):
        assert float(row[f"{way}_ratio"]) > 0
        assert float(row[f"{way}_compile_seconds"]) > 0
    assert row["decode_ratio_min"] == row["decode_ratio_max"]
    assert (row["decode_sentences"], row["decode_steps"]) == ("2", "3")
