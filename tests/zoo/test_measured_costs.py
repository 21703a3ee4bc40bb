"""The table of costs has a row for every preset, and its counts are those that
the papers' equations give at the papers' sizes."""

import pytest

from keras_deepnmt.zoo import list_models
from keras_deepnmt.zoo.costs import measured_costs
from keras_deepnmt.zoo.matched import count_role_parameters

COSTS = measured_costs()
D, F = 512, 2048
# Biases of a node's feed-forward network, and its norm.
NODE = F + D + 2 * D
# Residual and dense stacks of 4 layers, width 256, growth 128: convolutions,
# and what reads more of the encoder, the attention's memory.
RESIDUAL = 4 * (3 * 256 * 512 + 4 * 256)
DENSE_ENCODER = 3 * (256 + 384 + 512 + 640) * 256 + 4 * 4 * 128
DENSE_ENCODER += (768 - 256) * 256
# Of a decoder also queries and outputs, and what its last projection reads.
DENSE_DECODER = 3 * (256 + 512 + 768 + 1024) * 256 + 4 * 4 * 128
DENSE_DECODER += 4 * (2 * 128 * 256 + 2 * (256 + 128)) + (1280 - 256) * 256
ATTENTIONS = 4 * 2 * (256**2 + 2 * 256)


def extra(name):
    return int(COSTS[name]["extra_parameters"])


def test_every_preset_has_a_row():
    assert set(COSTS) == set(list_models())


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("layer_aggregation_dense_base", 0),
        ("layer_aggregation_linear_base", 3_145_728),
        ("layer_aggregation_linear_feed_forward_base", 14_680_064),
        ("layer_aggregation_iterative_base", 31_457_280 + 10 * NODE),
        ("layer_aggregation_hierarchical_base", 23_068_672 + 6 * NODE),
        (
            "layer_aggregation_hierarchical_diversity_base",
            23_068_672 + 6 * NODE,
        ),
        # One more attention in each of 8 blocks, with three biases.
        ("multi_layer_attention_k2_base", 33_554_432 + 8 * (NODE + 3 * D)),
        ("multi_layer_attention_k3_base", 37_748_736 + 6 * (NODE + 6 * D)),
        ("hybrid_self_attention_sum_base", 0),
        ("hybrid_self_attention_concat_small", 524_288),
        ("hybrid_self_attention_concat_base", 6_291_456),
        ("hybrid_self_attention_concat_big", 25_165_824),
        ("hybrid_self_attention_gated_small", 32_768),
        ("hybrid_self_attention_gated_base", 393_216),
        ("hybrid_self_attention_gated_big", 1_572_864),
        ("fine_grained_layer_attention_base", 21_504),
        ("fine_grained_layer_attention_big", 43_008),
        ("layer_attention_base", 42),
        # Without a bias of the key.
        ("surface_fusion_hard_base", 4 * D**2 + 3 * D),
        ("surface_fusion_soft_base", 4 * D**2 + 3 * D),
        ("dense_encoder_4l", DENSE_ENCODER - RESIDUAL),
        ("dense_decoder_4l", DENSE_DECODER - RESIDUAL - ATTENTIONS),
        (
            "dense_nmt_1_4l",
            DENSE_ENCODER + DENSE_DECODER - 2 * RESIDUAL - ATTENTIONS,
        ),
        # In each of 8 attentions, two vectors of width 32 for 33 distances.
        ("transformer_shaw_tiny", 8 * 2 * 33 * 32),
        # In each of 2 stacks, a number for 32 buckets and 4 heads.
        ("transformer_t5_bias_tiny", 2 * 32 * 4),
        ("transformer_rope_tiny", 0),
        # Keys and values of the 8 attentions of a decoder with a half of the
        # width 128, and of all 12 with a quarter; values have biases.
        ("transformer_gqa_tiny", -8 * (2 * 128 + 1) * 64),
        ("transformer_mqa_tiny", -12 * (2 * 128 + 1) * 96),
        # In 4 and in 2 decoder layers, in place of 4 D^2 + 3 D.
        (
            "transformer_aan_tiny",
            4 * (2 * 128 + 2 * 128 * 256 + 256 + 128 - 3 * 128),
        ),
        ("transformer_ssru_tiny", 2 * (128 - 2 * 128**2 - 3 * 128)),
        # Three more projections of encoder layers.
        ("dense_attention_4l", 3 * (256**2 + 2 * 256)),
        *(
            (
                f"role_interaction_dense_{size}",
                sum(count_role_parameters(width, 32, n) for n in (1, 2)),
            )
            for size, width in (("small", 256), ("base", 512), ("big", 1024))
        ),
    ],
)
def test_the_increments_are_those_of_the_equations(name, count):
    assert extra(name) == count


def test_tiny_presets_were_timed():
    columns = ("step_ratio", "decode_ratio", "step_compile_seconds")
    offenders = [
        f"{name}: {column}={row[column]!r}"
        for name, row in COSTS.items()
        if "_tiny" in name
        for column in columns
        if not row[column] or not float(row[column]) > 0
    ]
    assert not offenders, "\n".join(
        ["Run `python benchmarks/speed/preset_cost.py` for these.", *offenders]
    )
