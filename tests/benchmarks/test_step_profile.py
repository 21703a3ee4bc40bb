"""What must be true of the kinds of operations in a profiled step."""

from benchmarks.speed.step_profile import (
    kind_of,
    milliseconds_by_kind,
    read_instructions,
)

SIZES = dict(
    hidden_dim=8,
    intermediate_dim=16,
    vocabulary_size=50,
    batch_size=4,
    length=6,
)
PROGRAM = """
  %arg.1 = f32[24,8]{1,0} parameter(0)
  %arg.2 = f32[8,16]{1,0} parameter(1)
  %scores.1 = f32[24,50]{1,0} parameter(2)
  %dot.7 = f32[24,16]{1,0} dot(%arg.1, %arg.2), lhs_contracting_dims={1}
  %Einsum.1 = f32[4,2,6,6]{3,2,1,0} fusion(%arg.1), kind=kOutput, calls=%c.1
  %sum_fusion = f32[24]{0} fusion(%scores.1), kind=kLoop, calls=%c.2
  %ynn_fusion.2 = f32[16]{0} fusion(%dot.7), kind=kCustom, calls=%c.3
  ROOT %copy.3 = f32[16,24]{1,0} copy(%dot.7), metadata={op_name="a/dot"}
"""


def kinds():
    return {
        name: kind_of(name, *instruction, SIZES)
        for name, instruction in read_instructions(PROGRAM).items()
    }


def test_operations_are_sorted_by_opcode_and_shape():
    found = kinds()
    assert found["dot.7"] == "matrix products: projections, feed-forward"
    assert found["Einsum.1"] == "matrix products: attention"
    assert found["sum_fusion"] == "loss over the vocabulary"
    assert found["ynn_fusion.2"].startswith("sums over positions")
    assert found["copy.3"] == "transposed copies"


def test_products_with_the_vocabulary_are_a_kind_of_their_own():
    for shape, operands in (
        ((24, 50), [(24, 8), (50, 8)]),
        ((24, 8), [(24, 50), (50, 8)]),
    ):
        kind = kind_of("dot.1", shape, "dot", operands, SIZES)
        assert kind == "matrix products: output matrix"


def test_time_is_summed_and_events_of_the_profiler_itself_are_left_out():
    instructions = read_instructions(PROGRAM)
    events = [("dot.7", 2.0), ("copy.3", 1.0), ("dot.7", 3.0), ("Execute", 9.0)]
    assert milliseconds_by_kind(events, instructions, SIZES) == {
        "matrix products: projections, feed-forward": 5.0,
        "transposed copies": 1.0,
    }
