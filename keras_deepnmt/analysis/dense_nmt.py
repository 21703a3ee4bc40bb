"""Which earlier layers the blocks of a dense stack read (Shen et al., 2018)."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Figure, HeatMap


def dense_layer_norms(
    blocks: Sequence[keras.layers.Layer],
) -> tuple[list[str], np.ndarray]:
    """Measures the weights with which each block reads each earlier state.

        norm[l, i] = sqrt(sum K_i^2 / width of state i)

    K_i is the part of block l's convolution kernel that multiplies state i of
    its input, the concatenation of states in Shen et al. (2018, Eq. 6). A root
    mean square over channels makes states of different widths comparable.

    Args:
        blocks: Built `layers.ConvEncoderBlock` or `layers.ConvDecoderBlock` in
            their order, such as a model's `encoder_blocks`.

    Returns:
        The names of the states in their order, `"input"`, `"block 1"` and, in
        a decoder, `"attention 1"`, ...; and a float array with a row for each
        block and a column for each state, `nan` where a block cannot read the
        state.

    Raises:
        ValueError: if the blocks are not convolutional, or not built.

    Example:
    >>> layers = keras_deepnmt.layers
    >>> blocks = [layers.ConvEncoderBlock(5, "dense") for _ in range(2)]
    >>> states = [np.zeros((1, 3, 7), "float32")]
    >>> for block in blocks:
    ...     states = block(states)
    >>> names, norms = dense_layer_norms(blocks)
    >>> names, norms.shape
    (['input', 'block 1', 'block 2'], (2, 3))
    """
    if not blocks or not all(
        hasattr(block, "connection") and block.built for block in blocks
    ):
        raise ValueError(
            "`blocks` must be built convolutional blocks. Received: "
            f"{[type(block).__name__ for block in blocks]}."
        )
    names = ["input"]
    # The states that a block reads: (column, width), newest first.
    states = [(0, blocks[0].convolution.width)]
    rows = []
    for number, block in enumerate(blocks, start=1):
        rows.append(_norms(block, states))
        new = []
        for kind in _outputs(block):
            new.append((len(names), block.filters))
            names.append(f"{kind} {number}")
        states = [*new, *states] if block.connection == "dense" else new
    norms = np.full((len(blocks), len(names)), np.nan)
    for row, by_column in enumerate(rows):
        for column, norm in by_column.items():
            norms[row, column] = norm
    return names, norms


def _outputs(block):
    """The states that a block adds: its output, and attention if dense."""
    is_dense_decoder = hasattr(block, "attention") and (
        block.connection == "dense"
    )
    return ["block", "attention"] if is_dense_decoder else ["block"]


def _norms(block, states):
    kernel = block.convolution.convolution.kernel  # (k, D, 2 U)
    kernel = keras.ops.convert_to_numpy(kernel).astype("float64")
    norms, start = {}, 0
    for column, width in states:
        part = kernel[:, start : start + width]
        norms[column] = np.sqrt(np.sum(part**2) / width)
        start += width
    return norms


def dense_layer_figures(run: AnalyzedRun) -> list[Figure]:
    """The norm of the weights for each earlier layer, for each stack."""
    figures: list[Figure] = []
    for side in ("encoder", "decoder"):
        blocks = getattr(run.model, f"{side}_blocks")
        kinds = {getattr(block, "connection", None) for block in blocks}
        if "dense" not in kinds:
            continue
        names, norms = dense_layer_norms(blocks)
        figures.append(
            HeatMap(
                name=f"{side}_dense_layers",
                title=f"Earlier layers that {side} blocks read",
                caption="Norm of the part of a block's kernel that multiplies "
                "an earlier state, per input channel (Shen et al., 2018, "
                "Eq. 6).",
                # The last block at the top reads all; its output is not read.
                values=norms[:, :-1] if _last_is_unread(norms) else norms,
                row_names=[str(n) for n in range(1, len(norms) + 1)],
                column_names=names[:-1] if _last_is_unread(norms) else names,
                row_label=f"{side} block",
                column_label="state",
                unit="norm",
            )
        )
    return figures


def _last_is_unread(norms):
    return bool((norms[:, -1] != norms[:, -1]).all())
