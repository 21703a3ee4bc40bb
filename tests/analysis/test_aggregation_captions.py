"""What must be true of captions of aggregation: they name the nodes' inputs.

* those of the strategy, in the order in which `LayerAggregation` selects them
* those of the last node of a tree over an odd number of blocks
* those of attention, only where the model has it
"""

from types import SimpleNamespace

import pytest

import keras_deepnmt
from keras_deepnmt.analysis.layer_aggregation import aggregation_figures

LAST_NODE = "for the last node the last block, then the node below"
ATTENTION = "for attention the nearest block first"


def caption(preset, num_layers):
    model = keras_deepnmt.create_model(
        *(preset, 11, 11),
        hidden_dim=8,
        intermediate_dim=8,
        num_heads=2,
        num_encoder_layers=num_layers,
        num_decoder_layers=1,
    )
    figures = aggregation_figures(SimpleNamespace(model=model))
    (found,) = [f for f in figures if f.name == "encoder_input_exploitation"]
    text = found.caption.split("in which the node reads them: ")[1]
    return text.removesuffix(".").split("; "), found.values.shape


@pytest.mark.parametrize(
    ("strategy", "inputs", "shape"),
    [
        ("linear", "all blocks, the lowest one first", (1, 4)),
        (
            "iterative",
            "its block, then the node below, which for the lowest node is "
            "block 1",
            (3, 2),
        ),
        (
            "hierarchical",
            "the lower one of its blocks, the upper one, then the node below",
            (2, 3),
        ),
    ],
)
def test_the_inputs_are_those_of_the_strategy(strategy, inputs, shape):
    found = caption(f"layer_aggregation_{strategy}_tiny", num_layers=4)
    assert found == ([f"for aggregation {inputs}"], shape)


def test_the_last_node_of_an_odd_tree_reads_one_block():
    (_, last), shape = caption("layer_aggregation_hierarchical_tiny", 5)
    assert (last, shape) == (LAST_NODE, (3, 3))


def test_attention_is_named_where_there_is_some():
    assert caption("multi_layer_attention_k2_tiny", 4)[0] == [ATTENTION]
