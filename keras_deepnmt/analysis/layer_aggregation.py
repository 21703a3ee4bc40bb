"""Share of each input in layer aggregation (Dou et al., 2018, Eq. 11)."""

import keras
import numpy as np

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Figure, HeatMap

# The inputs of a node of each strategy, in the order in which it reads them.
_NODE_INPUTS = {
    "linear": "all blocks, the lowest one first",
    "iterative": "its block, then the node below, which for the lowest node is "
    "block 1",
    "hierarchical": "the lower one of its blocks, the upper one, then the node "
    "below",
}


def input_exploitation(layer):
    """Measures how much each aggregation node uses each of its inputs.

    A rough estimate from the weights alone: input j's share of the absolute
    values in the first matrix of the node's function (Dou et al., 2018,
    Eq. 11),

        s_j = sum |W_j| / (sum |W_1| + ... + sum |W_n|)

    Here W_j is the part of the matrix that multiplies input j.

    Args:
        layer: built `layers.AggregationNode`, `layers.LayerAggregation` or
            `layers.MultiLayerAttention`.

    Returns:
        List of float arrays `(n,)`, one per node, lowest first; each sums to 1.
        The inputs have the order in which the node reads them: for a
        hierarchical node H^(2i-1), H^(2i), A_(i-1), and for the last one of an
        odd number of layers H^L, A; for an iterative one H^l, A^(l-1); for
        linear aggregation H^1 to H^L; for attention the nearest layer first.

    Raises:
        ValueError: if the layer has no aggregation node, or is not built.

    Example:
    >>> node = keras_deepnmt.layers.AggregationNode()
    >>> node.build([(None, 5, 7)] * 3)
    >>> [shares.shape for shares in input_exploitation(node)]
    [(3,)]
    """
    matrices = None
    if layer.built and hasattr(layer, "input_matrices"):
        matrices = layer.input_matrices()
    if not matrices:
        raise ValueError(
            "`layer` must be a built layer with at least one aggregation "
            f"node. Received: {layer.name} of type {type(layer).__name__}, "
            f"built={layer.built}."
        )
    return [_matrix_shares(matrix) for matrix in matrices]


def _matrix_shares(matrix):
    matrix = keras.ops.convert_to_numpy(matrix).astype("float64")
    sizes = np.abs(matrix).sum(axis=(1, 2))  # (n, D, F) -> (n,)
    return sizes / sizes.sum()  # Eq. 11


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
    """Yields the inputs of the nodes of a stack, in words."""
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
