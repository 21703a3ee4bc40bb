"""Which state of a block each slot reads if an aggregation passes on another:
the outputs of the blocks, as the layers' docstrings say."""

import types

from keras_deepnmt.models.stack_slots import run_stack


class DenseSum:
    """Stands for dense aggregation: the newest state and all earlier sums."""

    feeds_back = True

    def __call__(self, layer_states, previous, padding_mask):
        return layer_states[-1] + sum(previous)


def test_slots_read_the_outputs_of_blocks_under_dense_aggregation():
    blocks = [
        types.SimpleNamespace(name=f"block_{n}", num_lower_states=n > 2)
        for n in (1, 2, 3)
    ]
    read = {}

    def run_block(block, x, lower):
        read[block.name] = (x, lower)
        return {"block_1": 1, "block_2": 10, "block_3": 100}[block.name]

    def diversity(layer_states, padding_mask):
        read["diversity"] = layer_states
        return layer_states[-1]

    layer_states, _ = run_stack(
        blocks, 0, run_block, DenseSum(), diversity, {"padding_mask": None}
    )
    # The third block's input is the sum of Eq. 4, 10 + 1; what it reads below
    # is the first block's output.
    assert read["block_3"] == (11, [1])
    # Eq. 10 compares the outputs, not the sums 1, 11 and 112.
    assert read["diversity"] == [1, 10, 100]
    # Of the states that FGLA reads only the top is the sum.
    assert layer_states == [0, 1, 10, 112]
