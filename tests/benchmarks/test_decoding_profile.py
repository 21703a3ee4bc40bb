"""What must be true of the kinds of operations in a profiled search."""

from benchmarks.speed.decoding_profile import kind_of, search_flops
from benchmarks.speed.step_profile import read_instructions

SIZES = dict(
    hidden_dim=8,
    intermediate_dim=16,
    vocabulary_size=60,
    num_encoder_layers=1,
    num_decoder_layers=1,
)
PROGRAM = """
  %rows.1 = f32[12,8]{1,0} parameter(0)
  %kernel.2 = f32[8,16]{1,0} parameter(1)
  %matrix.3 = f32[60,8]{1,0} parameter(2)
  %history.4 = f32[3,2,20,4]{3,2,1,0} parameter(3)
  %dot.1 = f32[12,16]{1,0} dot(%rows.1, %kernel.2), lhs_contracting_dims={1}
  %dot.2 = f32[12,60]{1,0} dot(%rows.1, %matrix.3), lhs_contracting_dims={1}
  %Einsum.3 = f32[3,2,4,20]{3,2,1,0} fusion(%history.4), kind=kOutput, calls=%c
  %maxima.4 = f32[12,3]{1,0} fusion(%dot.2), kind=kLoop, calls=%c.1
  %softmax.5 = f32[3,2,4,20]{3,2,1,0} fusion(%Einsum.3), kind=kLoop, calls=%c.2
  %dynamic-update.6 = f32[3,2,20,4]{3,2,1,0} fusion(%history.4), calls=%c.4
  %norm.7 = f32[12,8]{1,0} fusion(%rows.1), kind=kLoop, calls=%c.3
"""


def test_operations_are_sorted_by_opcode_and_shape():
    found = {
        name: kind_of(name, *instruction, SIZES)
        for name, instruction in read_instructions(PROGRAM).items()
    }
    assert found["dot.1"] == "matrix products: projections, feed-forward"
    assert found["dot.2"] == "matrix products: output matrix"
    assert found["Einsum.3"] == "matrix products: attention"
    assert found["maxima.4"] == "probabilities of the vocabulary, best tokens"
    assert found["softmax.5"] == "attention: masks, softmax"
    assert found["dynamic-update.6"] == "writing to caches, re-ordering"
    assert found["norm.7"] == "element-wise, normalization, hypotheses"


def test_output_matrix_counts_once_for_each_hypothesis_and_step():
    larger = SIZES | {"vocabulary_size": 61}
    difference = search_flops(larger, 25) - search_flops(SIZES, 25)
    assert difference == 2 * 8 * 32 * 4 * 32
