"""Figures of layer aggregation: the inputs that each node uses."""

import numpy as np

from keras_deepnmt.analysis import input_exploitation
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Figure, HeatMap

# The inputs of a node of each strategy, in the order in which it reads them.
_NODE_INPUTS = {
    "linear": "all blocks, the lowest one first",
    "iterative": "its block, then the node below, which for the lowest node is "
    "block 1",
    "hierarchical": "the lower one of its blocks, the upper one, then the node "
    "below",
}


def aggregation_figures(run: AnalyzedRun) -> list[Figure]:
    """The share of each input in each aggregation node."""
    figures: list[Figure] = []
    for side in ("encoder", "decoder"):
        nodes = _nodes(run.model, side)
        if not nodes:
            continue
        width = max(map(len, nodes.values()))
        values = np.full((len(nodes), width), np.nan)
        for row, shares in zip(values, nodes.values(), strict=True):
            row[: len(shares)] = shares
        figures.append(
            HeatMap(
                name=f"{side}_input_exploitation",
                title=f"Inputs of the {side}'s aggregation nodes",
                caption="Share of each input in the absolute weights of the "
                "node's first matrix (Dou et al., 2018, Eq. 11); each row "
                "sums to 1. Inputs in the order in which the node reads them: "
                f"{'; '.join(_node_inputs(run.model, side))}.",
                values=values,
                row_names=list(nodes),
                column_names=[str(i) for i in range(1, width + 1)],
                row_label="node",
                column_label="input",
                unit="share",
                limits=(0.0, 1.0),
            )
        )
    return figures


def _nodes(model, side):
    """The shares of all nodes of a stack by name."""
    nodes = {}
    aggregation = getattr(model, f"{side}_aggregation", None)
    if aggregation is not None:
        for number, shares in enumerate(_shares(aggregation), start=1):
            nodes[f"aggregation {number}"] = shares
    for number, block in enumerate(getattr(model, f"{side}_blocks"), start=1):
        for shares in _shares(getattr(block, "attention", None)):
            nodes[f"attention of block {number}"] = shares
    return nodes


def _node_inputs(model, side):
    """Yields what the nodes of a stack read."""
    aggregation = getattr(model, f"{side}_aggregation", None)
    if _shares(aggregation):
        strategy = aggregation.strategy
        yield f"for aggregation {_NODE_INPUTS[strategy]}"
        if strategy == "hierarchical" and aggregation.num_states % 2:
            yield "for the last node the last block, then the node below"
    blocks = getattr(model, f"{side}_blocks")
    if any(_shares(getattr(block, "attention", None)) for block in blocks):
        yield "for attention the nearest block first"


def _shares(layer):
    """The shares of a layer's nodes; none for layers without nodes."""
    try:
        return input_exploitation(layer)
    except (ValueError, AttributeError):
        return []
